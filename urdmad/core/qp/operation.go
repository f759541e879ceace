package qp

import "urdma/verbs/abi"

// rows has the operation of each opcode. The last row is for all unknown opcodes.
var rows = func() (all [17]*abi.Operation) {
	for i := range all {
		if all[i] = abi.OperationOf(uint32(i)); all[i] == nil {
			all[i] = &abi.Operation{RDMAP: abi.NoRDMAP}
		}
	}
	return all
}()

// operationOf returns the row of an opcode, which comes from the client and may be invalid.
func operationOf(opcode uint32) *abi.Operation { return rows[min(opcode, uint32(len(rows)-1))] }
