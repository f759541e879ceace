package wire

import (
	"encoding/binary"
	"testing"
)

// TestUC checks the bytes of packets between queue pairs of type UC, in both directions.
func TestUC(t *testing.T) {
	for _, c := range []struct {
		name string
		u    UC
		b    string
	}{
		{"middle of a Send", UC{PSN: 0x01020304, Dst: 0x11, Src: 0x22},
			"01 02 03 04 00 00 00 00 80 00 00 00 00 11 00 00 00 22 00 00 00 00 00 00 00 00"},
		{"Write of one packet with immediate",
			UC{PSN: 5, Dst: 0xfffffe, Src: 2, First: true, Last: true, Write: true, HasImmediate: true,
				Solicited: true, Immediate: binary.NativeEndian.Uint32([]byte{0xa1, 0xb2, 0xc3, 0xd4}), STag: 0x99aabbcc,
				TO: 0x1122334455667788},
			"00 00 00 05 00 00 00 00 80 00 00 ff ff fe 00 00 00 02 f8 00 00 00 a1 b2 c3 d4 99 aa bb cc 11 22 33 44 55 66 77 88"},
	} {
		want := unhex(t, c.b)
		b := make([]byte, MaxUCLen)
		if n := c.u.Put(b); string(b[:n]) != string(want) {
			t.Errorf("%s: % x, expected % x", c.name, b[:n], want)
		}
		var u UC
		if n, err := u.Parse(append(want, "payload"...)); err != nil || n != len(want) || u != c.u {
			t.Errorf("%s: parses as %+v, %d, %v", c.name, u, n, err)
		}
		for cut := range want {
			if _, err := u.Parse(want[:cut]); err == nil {
				t.Errorf("%s: %d of its bytes parse", c.name, cut)
			}
		}
		want[8] = 0
		if _, err := u.Parse(want); err == nil {
			t.Errorf("%s: parses with another opcode", c.name)
		}
	}
}
