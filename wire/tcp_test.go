package wire

import (
	"net/netip"
	"testing"
)

// TestTCPChecksums: the checksums of built frames are correct, over IPv4 and IPv6.
func TestTCPChecksums(t *testing.T) {
	for _, ends := range [][2]string{{"10.0.0.1:7471", "10.0.0.2:49152"}, {"[fd00::1]:7471", "[fd00::2]:49152"}} {
		s := TCP{Src: netip.MustParseAddrPort(ends[0]), Dst: netip.MustParseAddrPort(ends[1]), Seq: 1 << 31, Ack: 7,
			Flags: TCPAck}
		for _, payload := range []string{"", "a", "MPA ID Req Frame"} {
			b := s.Append(nil, []byte(payload))
			var f Frame
			if err := f.Parse(b, len(b)); err != nil || f.Proto != ProtoTCP {
				t.Fatalf("%v: %+v, %v", ends, f, err)
			}
			ip, segment := b[f.IPHeaderOff:f.IPHeaderOff+f.IPHeaderLen], b[f.IPHeaderOff+f.IPHeaderLen:]
			addresses := ip[8:]
			if s.Src.Addr().Is4() {
				addresses = ip[12:]
			}
			sum := addUint16(addUint16(Checksum(0, addresses), ProtoTCP), uint16(len(segment)))
			if got := Fold(Checksum(sum, segment)); got != 0xffff || string(segment[TCPLen:]) != payload {
				t.Errorf("%v, %q: the segment sums up to %#x", ends, payload, got)
			}
		}
	}
}
