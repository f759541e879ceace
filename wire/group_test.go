package wire

import (
	"bytes"
	"testing"
)

// TestIGMP checks the bytes of a report and a leave, and parses a query.
func TestIGMP(t *testing.T) {
	b := make([]byte, IGMPFrameLen)
	(&IGMP{IGMPReport, IPv4{239, 129, 2, 3}}).Put(b, MAC{2, 0, 0, 0, 0, 1}, IPv4{10, 0, 0, 1})
	want := unhex(t, "01005e010203 020000000001 0800 46000020 00000000 01023f47 0a000001 ef810203 94040000 1600f8f9 "+
		"ef810203")
	if !bytes.Equal(b[:24], want[:24]) || !bytes.Equal(b[26:40], want[26:40]) || !bytes.Equal(b[42:], want[42:]) {
		t.Errorf("% x, want % x", b, want)
	}
	if !VerifyIPv4Checksum(b[14:38]) {
		t.Error("the IPv4 checksum is wrong")
	}
	var g IGMP
	if !g.Parse(b[38:]) || g.Type != IGMPReport || g.Group != (IPv4{239, 129, 2, 3}) {
		t.Errorf("%+v", g)
	}
	b[45]++
	if g.Parse(b[38:]) || g.Parse(b[38:45]) {
		t.Error("a damaged or short message is taken")
	}
	(&IGMP{IGMPLeave, IPv4{239, 129, 2, 3}}).Put(b, MAC{2, 0, 0, 0, 0, 1}, IPv4{10, 0, 0, 1})
	if !bytes.Equal(b[30:34], []byte{224, 0, 0, 2}) || !bytes.Equal(b[:6], []byte{1, 0, 0x5e, 0, 0, 2}) {
		t.Errorf("a leave goes to % x", b[30:34])
	}
}
