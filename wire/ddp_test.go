package wire

import (
	"errors"
	"testing"
)

const (
	sendHeader  = "41 43 00000000 00000000 00000001 00000000"
	readHeader  = "41 41 00000000 00000001 00000001 00000000"
	writeHeader = "c1 40 12345678 0000000000001000"
)

// RFC 7306 headers, which no capture contains.
func TestDDPGoldenExtensions(t *testing.T) {
	for _, c := range []struct {
		hex  string
		want DDP
	}{
		{"41 48 00000000 00000000 00000005 00000000", DDP{Last: true, Op: OpImmediate, MSN: 5}},
		{"41 49 00000000 00000000 00000006 00000000", DDP{Last: true, Op: OpImmediateSE, MSN: 6}},
		{"41 4a 00000000 00000001 00000002 00000000", DDP{Last: true, Op: OpAtomicRequest, QN: 1, MSN: 2}},
		{"41 4b 00000000 00000003 00000001 00000000", DDP{Last: true, Op: OpAtomicResponse, QN: 3, MSN: 1}},
		{"01 46 cafe0001 00000000 ffffffff 00000580", DDP{Op: OpSendSEInv, STag: 0xcafe0001, MSN: 0xffffffff, MO: 0x580}},
	} {
		b := unhex(t, c.hex)
		var got DDP
		if n, err := got.Parse(b); n != UntaggedLen || err != nil || got != c.want {
			t.Errorf("%s: %d %v %+v", c.hex, n, err, got)
		}
		out := make([]byte, UntaggedLen)
		c.want.Put(out)
		sameBytes(t, c.hex, out, b)
	}
}

func TestDDPRefusals(t *testing.T) {
	set := func(s string, i int, v byte) []byte {
		b := unhex(t, s)
		b[i] = v
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		want *ProtocolError
		code TermCode
	}{
		{"empty", nil, ErrDDPShort, 0x0207},
		{"untagged cut", unhex(t, sendHeader)[:17], ErrDDPShort, 0x0207},
		{"tagged cut", unhex(t, writeHeader)[:13], ErrDDPShort, 0x0207},
		{"DDP version 0, untagged", set(sendHeader, 0, 0x40), ErrDDPUntaggedVersion, 0x1206},
		{"DDP version 2, tagged", set(writeHeader, 0, 0xc2), ErrDDPTaggedVersion, 0x1104},
		{"queue 4", set(sendHeader, 9, 4), ErrDDPQueue, 0x1201},
		{"queue 2^24", set(sendHeader, 6, 1), ErrDDPQueue, 0x1201},
		{"RDMAP version 0", set(sendHeader, 1, 0x03), ErrRDMAPVersion, 0x0205},
		{"RDMAP version 2, tagged", set(writeHeader, 1, 0x80), ErrRDMAPVersion, 0x0205},
		{"opcode 12", set(sendHeader, 1, 0x4c), ErrRDMAPOpcode, 0x0206},
		{"opcode 15, tagged", set(writeHeader, 1, 0x4f), ErrRDMAPOpcode, 0x0206},
		{"Write, untagged", set(sendHeader, 1, 0x40), ErrRDMAPTagged, 0x0206},
		{"Read Response, untagged", set(sendHeader, 1, 0x42), ErrRDMAPTagged, 0x0206},
		{"Send, tagged", set(writeHeader, 1, 0x43), ErrRDMAPTagged, 0x0206},
		{"Terminate, tagged", set(writeHeader, 1, 0x47), ErrRDMAPTagged, 0x0206},
		{"Send on queue 1", set(sendHeader, 9, 1), ErrRDMAPQueue, 0x0206},
		{"Read Request on queue 0", set(readHeader, 9, 0), ErrRDMAPQueue, 0x0206},
		{"Read Request at offset 1", set(readHeader, 17, 1), ErrDDPOffset, 0x1204},
		{"Read Request not last", set(readHeader, 0, 0x01), ErrDDPNotLast, 0x1205},
		{"Immediate not last", set(sendHeader, 1, 0x48), nil, 0},
		{"reserved bits set", set(sendHeader, 0, 0x7d), nil, 0},
		{"RDMAP reserved bits set", set(sendHeader, 1, 0x73), nil, 0},
	} {
		var d DDP
		_, err := d.Parse(c.b)
		if c.want == nil {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		var p *ProtocolError
		if !errors.As(err, &p) || p != c.want || p.Code != c.code {
			t.Errorf("%s: %v, want %v (%#04x)", c.name, err, c.want, uint16(c.code))
		}
	}
}

// Every opcode goes with exactly one buffer model and one queue.
func TestOpcodeQueueMatrix(t *testing.T) {
	queues := map[Opcode]uint32{
		OpReadRequest: 1, OpSend: 0, OpSendInv: 0, OpSendSE: 0, OpSendSEInv: 0, OpTerminate: 2,
		OpImmediate: 0, OpImmediateSE: 0, OpAtomicRequest: 1, OpAtomicResponse: 3,
	}
	for op := Opcode(0); op < 16; op++ {
		tagged := op == OpWrite || op == OpReadResponse
		for qn := range uint32(5) {
			d := DDP{Last: true, Op: op, QN: qn, MSN: 1}
			b := make([]byte, UntaggedLen)
			d.Put(b)
			_, err := d.Parse(b)
			want, known := queues[op]
			if ok := known && want == qn; (err == nil) != ok {
				t.Errorf("%v untagged on queue %d: %v", op, qn, err)
			}
		}
		d := DDP{Tagged: true, Last: true, Op: op}
		b := make([]byte, TaggedLen)
		d.Put(b)
		if _, err := d.Parse(b); (err == nil) != tagged {
			t.Errorf("%v tagged: %v", op, err)
		}
		if opcodes[op&15].tagged != tagged || op.Queue() != queues[op] {
			t.Errorf("%v: Tagged %v Queue %d", op, opcodes[op&15].tagged, op.Queue())
		}
	}
}

func TestOpcodePredicates(t *testing.T) {
	for op := Opcode(0); op < 16; op++ {
		if got, want := op.IsSend(), op >= 3 && op <= 6; got != want {
			t.Errorf("%v IsSend %v", op, got)
		}
		if got, want := op.Invalidates(), op == 4 || op == 6; got != want {
			t.Errorf("%v Invalidates %v", op, got)
		}
		if got, want := op.Solicited(), op == 5 || op == 6 || op == 9; got != want {
			t.Errorf("%v Solicited %v", op, got)
		}
	}
	if OpSendSEInv.String() != "Send with Solicited Event and Invalidate" || Opcode(14).String() != "RDMAP opcode 14" ||
		Opcode(200).String() != "RDMAP opcode 200" {
		t.Error(OpSendSEInv, Opcode(14), Opcode(200))
	}
}
