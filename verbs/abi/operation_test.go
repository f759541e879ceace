package abi

import (
	"testing"

	"urdma/wire"
)

// TestOperationsOnTheWire: the RDMAP opcodes are the same as in package wire.
func TestOperationsOnTheWire(t *testing.T) {
	for opcode, want := range map[uint32]wire.Opcode{WRRDMAWrite: wire.OpWrite, WRRDMAWriteWithImm: wire.OpWrite,
		WRSend: wire.OpSend, WRSendWithImm: wire.OpSend, WRSendWithInv: wire.OpSendInv, WRRDMARead: wire.OpReadRequest,
		WRAtomicCmpAndSwp: wire.OpAtomicRequest, WRAtomicFetchAndAdd: wire.OpAtomicRequest,
		WRLocalInv: NoRDMAP, WRBindMW: NoRDMAP, WRTSO: NoRDMAP, WRAtomicWrite: NoRDMAP} {
		if got := wire.Opcode(OperationOf(opcode).RDMAP); got != want {
			t.Errorf("%s is RDMAP opcode %d, expected %d", OperationOf(opcode).Name, got, want)
		}
	}
}

// TestOperations: conditions that every row must meet, and numbers that are not opcodes.
func TestOperations(t *testing.T) {
	rows := 0
	for opcode := range uint32(64) {
		op := OperationOf(opcode)
		if op == nil {
			continue
		}
		rows++
		switch {
		case op.Inline && !op.ReadsLocal, op.Immediate && !op.TakesReceive, op.Immediate && op.Invalidates,
			op.ReadsLocal && op.WritesLocal, op.Atomic && op.RemoteAccess != AccessRemoteAtomic, op.Supported &&
				op.RDMAP == NoRDMAP && (op.TakesReceive || op.RemoteAccess != 0):
			t.Errorf("%+v contradicts itself", *op)
		}
	}
	if rows != 12 || OperationOf(11) != nil || OperationOf(1<<31) != nil {
		t.Errorf("%d rows, expected rdma-core's 12 without DRIVER1", rows)
	}
}
