package qp

import "urdma/verbs/abi"

// unknown is the operation of a number that is no opcode.
var unknown = abi.Operation{RDMAP: abi.NoRDMAP}

// operationOf is the row of an opcode, which a client may have got wrong.
func operationOf(opcode uint32) *abi.Operation {
	if op := abi.OperationOf(opcode); op != nil {
		return op
	}
	return &unknown
}
