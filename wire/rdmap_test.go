package wire

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

const atomicHex = `0000 000%op 00000007 cafe0001 00005555 00000008
	0000000000000001 ffffffffffffffff 0123456789abcdef 00000000ffffffff`

// The opcode numbers follow RFC 7306. Wireshark's dissector reads 0 as add and 2 as swap with compare; the C urdma
// sends 1 for CmpSwap.
func TestAtomicRequestGolden(t *testing.T) {
	for op, name := range map[AtomicOp]string{AtomicFetchAdd: "0", AtomicSwap: "1", AtomicCmpSwap: "2"} {
		b := unhex(t, strings.Replace(atomicHex, "%op", name, 1))
		want := AtomicRequest{
			Opcode: op, RequestID: 7, STag: 0xcafe0001, TO: 0x555500000008,
			Data: 1, Mask: 0xffffffffffffffff, Compare: 0x0123456789abcdef, CompareMask: 0xffffffff,
		}
		var got AtomicRequest
		if n, err := got.Parse(b); n != AtomicRequestLen || err != nil || got != want {
			t.Errorf("%v: %d %v\n got %+v\nwant %+v", op, n, err, got, want)
		}
		out := make([]byte, AtomicRequestLen)
		want.Put(out)
		sameBytes(t, name, out, b)
		b[0], b[3] = 0xff, b[3]|0xf0 // reserved bits are ignored
		if _, err := got.Parse(b); err != nil || got != want {
			t.Errorf("%v with reserved bits: %v %+v", op, err, got)
		}
	}
}

func TestAtomicResponseGolden(t *testing.T) {
	b := unhex(t, "00000007 0123456789abcdef")
	want := AtomicResponse{RequestID: 7, Original: 0x0123456789abcdef}
	var got AtomicResponse
	if n, err := got.Parse(b); n != AtomicResponseLen || err != nil || got != want {
		t.Errorf("%d %v %+v", n, err, got)
	}
	out := make([]byte, AtomicResponseLen)
	want.Put(out)
	sameBytes(t, "Put", out, b)
}

func TestBodyRefusals(t *testing.T) {
	var (
		read ReadRequest
		req  AtomicRequest
		resp AtomicResponse
		imm  Immediate
	)
	for _, c := range []struct {
		name        string
		parse       func([]byte) (int, error)
		length      int
		short, long *ProtocolError
	}{
		{"read request", read.Parse, 28, ErrReadRequestShort, ErrReadRequestLong},
		{"atomic request", req.Parse, 52, ErrAtomicShort, ErrAtomicLong},
		{"atomic response", resp.Parse, 12, ErrAtomicShort, ErrAtomicLong},
		{"immediate", imm.Parse, 8, ErrImmediateShort, ErrImmediateLong},
	} {
		for n := range c.length + 3 {
			var want error
			switch {
			case n < c.length:
				want = c.short
			case n > c.length:
				want = c.long
			}
			if _, err := c.parse(make([]byte, n)); !errors.Is(err, want) {
				t.Errorf("%s of %d bytes: %v, want %v", c.name, n, err, want)
			}
		}
	}
	for op := byte(3); op < 16; op++ {
		b := make([]byte, AtomicRequestLen)
		b[3] = op
		if _, err := req.Parse(b); !errors.Is(err, ErrAtomicOpcode) {
			t.Errorf("atomic opcode %d: %v", op, err)
		}
	}
}

// termTable is the table of RFC 5040 section 4.8, RFC 5041 section 7 and RFC 6581 section 7, independent of the
// code under test.
var termTable = map[TermCode][3]uint8{
	TermRDMAPCatastrophic: {0, 0, 0},
	TermProtectionSTag:    {0, 1, 0}, TermProtectionBounds: {0, 1, 1}, TermProtectionAccess: {0, 1, 2},
	TermProtectionStream: {0, 1, 3}, TermProtectionWrap: {0, 1, 4}, TermProtectionInvalidate: {0, 1, 9},
	TermProtectionUnspecified: {0, 1, 0xff},
	TermOperationVersion:      {0, 2, 5}, TermOperationOpcode: {0, 2, 6}, TermOperationStream: {0, 2, 7},
	TermOperationGlobal: {0, 2, 8}, TermOperationInvalidate: {0, 2, 9}, TermOperationUnspecified: {0, 2, 0xff},
	TermDDPCatastrophic: {1, 0, 0},
	TermTaggedSTag:      {1, 1, 0}, TermTaggedBounds: {1, 1, 1}, TermTaggedStream: {1, 1, 2},
	TermTaggedWrap: {1, 1, 3}, TermTaggedVersion: {1, 1, 4},
	TermUntaggedQN: {1, 2, 1}, TermUntaggedNoBuffer: {1, 2, 2}, TermUntaggedMSN: {1, 2, 3},
	TermUntaggedMO: {1, 2, 4}, TermUntaggedTooLong: {1, 2, 5}, TermUntaggedVersion: {1, 2, 6},
	TermMPALost: {2, 0, 1}, TermMPACRC: {2, 0, 2}, TermMPAMarker: {2, 0, 3}, TermMPARequest: {2, 0, 4},
	TermMPALocal: {2, 0, 5}, TermMPAIRD: {2, 0, 6}, TermMPARTR: {2, 0, 7},
}

func TestTermCodes(t *testing.T) {
	seen := map[string]TermCode{}
	for c, want := range termTable {
		if got := [3]uint8{c.Layer(), c.Type(), c.Code()}; got != want {
			t.Errorf("%v is %v, want %v", c, got, want)
		}
		if other, dup := seen[c.String()]; dup {
			t.Errorf("%#04x and %#04x are both %q", uint16(c), uint16(other), c)
		}
		seen[c.String()] = c
	}
	for c := range 1 << 16 {
		_, known := termTable[TermCode(c)]
		if named := TermCode(c).name() != ""; named != known {
			t.Errorf("%#04x: %v", c, TermCode(c))
		}
	}
	if s := TermCode(0x3b07).String(); s != "unassigned code, layer 3 type 11 code 7" {
		t.Error(s)
	}
}

func TestTerminateGolden(t *testing.T) {
	read := unhex(t, "cafe0001 0000000000001000 00000040 cafe0002 0000000000002000")
	for _, c := range []struct {
		name, hex string
		want      Terminate
	}{
		{"code alone", "0207 0000", Terminate{Code: TermOperationStream}},
		{"length alone", "0206 8000 0030", Terminate{Code: TermOperationOpcode, HasDDPLen: true, SegmentLen: 48}},
		{"tagged", "1101 c000 004e c140 cafe0001 0000000000001000",
			Terminate{Code: TermTaggedBounds, HasDDPLen: true, SegmentLen: 78,
				DDPHeader: unhex(t, "c140 cafe0001 0000000000001000")}},
		{"untagged, length not valid", "1205 4000 0000 4143 00000000 00000000 00000001 00000000",
			Terminate{Code: TermUntaggedTooLong, DDPHeader: unhex(t, sendHeader)}},
		{"read request", "0102 e000 002e 4141 00000000 00000001 00000001 00000000 cafe0001 0000000000001000 00000040 " +
			"cafe0002 0000000000002000",
			Terminate{Code: TermProtectionAccess, HasDDPLen: true, SegmentLen: 46, DDPHeader: unhex(t, readHeader),
				ReadRequest: read}},
	} {
		b := unhex(t, c.hex)
		var got Terminate
		if n, err := got.Parse(b); n != len(b) || err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %d %v\n got %+v\nwant %+v", c.name, n, err, got, c.want)
		}
		out := make([]byte, MaxTerminateLen)
		if n := c.want.Put(out); n != len(b) {
			t.Errorf("%s: Put answers %d, want %d", c.name, n, len(b))
		}
		sameBytes(t, c.name, out[:len(b)], b)
		for n := range len(b) {
			if _, err := got.Parse(b[:n]); !errors.Is(err, ErrTerminateShort) {
				t.Errorf("%s cut to %d: %v", c.name, n, err)
			}
		}
	}
	var got Terminate
	if _, err := got.Parse(append(unhex(t, "0102 2000"), read...)); !errors.Is(err, ErrTerminateHeaderDDP) {
		t.Errorf("R without D: %v", err)
	}
}
