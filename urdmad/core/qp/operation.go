package qp

import "urdma/verbs/abi"

// rows has the operation of each opcode; the last stands for every number that is
// none.
var rows = func() (all [17]*abi.Operation) {
	for i := range all {
		if all[i] = abi.OperationOf(uint32(i)); all[i] == nil {
			all[i] = &abi.Operation{RDMAP: abi.NoRDMAP}
		}
	}
	return all
}()

// operationOf is the row of an opcode, which a client may have got wrong.
func operationOf(opcode uint32) *abi.Operation { return rows[min(opcode, uint32(len(rows)-1))] }
