package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// Frames of Linux 6.18 between two ends of a veth, fd00:9::a and fd00:9::b. The UDP checksum of udp6Frame was
// computed by tcpdump: the sender left it to the device.
const (
	udp6Frame = `0200 0000 000b 0200 0000 000a 86dd 6009 1b38 000f 1140 fd00 0009 0000 0000 0000 0000 0000 000a
		fd00 0009 0000 0000 0000 0000 0000 000b c001 12b7 000f a1c1 6162 6364 6566 67`
	udp6OptionFrame = `0200 0000 000b 0200 0000 000a 86dd 6007 a011 0012 3c40 fd00 0009 0000 0000 0000 0000 0000 000a
		fd00 0009 0000 0000 0000 0000 0000 000b 1100 0104 0000 0000 c002 12b7 000a ca8e 6869`
	echo6Request = `0200 0000 000b 0200 0000 000a 86dd 6002 f8c1 0010 3a40 fd00 0009 0000 0000 0000 0000 0000 000a
		fd00 0009 0000 0000 0000 0000 0000 000b 8000 6014 1967 0001 0001 0203 0405 0607`
	echo6Reply = `0200 0000 000a 0200 0000 000b 86dd 600b 0c61 0010 3a40 fd00 0009 0000 0000 0000 0000 0000 000b
		fd00 0009 0000 0000 0000 0000 0000 000a 8100 5f14 1967 0001 0001 0203 0405 0607`
)

var (
	macA, macB = MAC{2, 0, 0, 0, 0, 0xa}, MAC{2, 0, 0, 0, 0, 0xb}
	ip6A, ip6B = IPv6{0: 0xfd, 3: 9, 15: 0xa}, IPv6{0: 0xfd, 3: 9, 15: 0xb}
)

func TestFrame6Golden(t *testing.T) {
	for _, c := range []struct {
		name, hex string
		want      Frame
	}{
		{"UDP", udp6Frame, Frame{Dst: macB, Src: macA, Type: EtherTypeIPv6, IPHeaderOff: 14, IPHeaderLen: 40, Proto: ProtoUDP,
			TTL:  64,
			Src6: ip6A, Dst6: ip6B, SrcPort: 49153, DstPort: 4791, UDPChecksum: 0xa1c1, PayloadOff: 62, PayloadLen: 7}},
		{"UDP behind destination options", udp6OptionFrame,
			Frame{Dst: macB, Src: macA, Type: EtherTypeIPv6, IPHeaderOff: 14, IPHeaderLen: 48, Proto: ProtoUDP, TTL: 64,
				Src6: ip6A, Dst6: ip6B, SrcPort: 49154, DstPort: 4791, UDPChecksum: 0xca8e, PayloadOff: 70, PayloadLen: 2}},
		{"echo request", echo6Request,
			Frame{Dst: macB, Src: macA, Type: EtherTypeIPv6, IPHeaderOff: 14, IPHeaderLen: 40, Proto: ProtoICMPv6, TTL: 64,
				Src6: ip6A, Dst6: ip6B, PayloadOff: 54, PayloadLen: 16}},
	} {
		b := unhex(t, c.hex)
		var f Frame
		if err := f.Parse(b, len(b)); err != nil || f != c.want {
			t.Errorf("%s: %v\n got %+v\nwant %+v", c.name, err, f, c.want)
		}
		if f.Proto != ProtoUDP {
			continue
		}
		udp := b[f.PayloadOff-UDPLen:]
		if !VerifyUDPChecksum(&f, udp) {
			t.Errorf("%s: the checksum of a capture is found wrong", c.name)
		}
		if f.UDPChecksum = 0; VerifyUDPChecksum(&f, udp) {
			t.Errorf("%s: taken without a checksum", c.name)
		}
	}
}

// TestUDP6HeaderMatchesCapture: equal but for the flow label, which is 0 in our header.
func TestUDP6HeaderMatchesCapture(t *testing.T) {
	want := unhex(t, udp6Frame)
	binary.BigEndian.PutUint32(want[14:], 6<<28)
	var h UDP6Header
	h.Init(macA, MAC{}, ip6A, ip6B, 49153, 4791)
	h.SetDst(macB)
	b := make([]byte, len(want))
	copy(b[UDP6HeaderLen:], "abcdefg")
	h.Put(b, 7)
	SetUDP6Checksum(b)
	sameBytes(t, "frame", b, want)
	if h.Dst() != ip6B {
		t.Errorf("destination %v", h.Dst())
	}
}

func TestUDP6Checksums(t *testing.T) {
	r := newRand(t)
	for range 2000 {
		b := udp6(randBytes(r, r.IntN(1500)))
		var f Frame
		if err := f.Parse(b, len(b)); err != nil || f.UDPChecksum == 0 || !VerifyUDPChecksum(&f, b[54:]) {
			t.Fatalf("%d bytes: checksum %#x found wrong (%v)", len(b), f.UDPChecksum, err)
		}
		i := 22 + r.IntN(len(b)-22) // the checksum covers the addresses, too
		b[i] ^= 1 << r.IntN(8)
		if f.Parse(b, len(b)) == nil && VerifyUDPChecksum(&f, b[54:]) {
			t.Fatalf("a changed bit in byte %d went unnoticed", i)
		}
	}
	b := udp6([]byte{0, 0})
	copy(b[62:], b[60:62]) // now the sum is 0xffff and its complement 0, which is sent as all ones
	if SetUDP6Checksum(b); b[60] != 0xff || b[61] != 0xff {
		t.Errorf("checksum % x, want ff ff", b[60:62])
	}
}

// udp6 is an IPv6 frame with a UDP payload.
func udp6(payload []byte) []byte {
	var h UDP6Header
	h.Init(macA, macB, ip6A, ip6B, 4791, 0xc001)
	b := make([]byte, UDP6HeaderLen+len(payload))
	copy(b[UDP6HeaderLen:], payload)
	h.Put(b, len(payload))
	SetUDP6Checksum(b)
	return b
}

// withExtensions puts extension headers before the UDP header of a frame.
func withExtensions(b []byte, first byte, headers ...byte) []byte {
	out := append(append(bytes.Clone(b[:54]), headers...), b[54:]...)
	out[20] = first
	binary.BigEndian.PutUint16(out[18:], uint16(len(out)-54))
	return out
}

func TestFrame6Refusals(t *testing.T) {
	whole := func(b []byte) ([]byte, int) { return b, len(b) }
	with := func(first byte, headers ...byte) func(b []byte) ([]byte, int) {
		return func(b []byte) ([]byte, int) { return whole(withExtensions(b, first, headers...)) }
	}
	long := func(n byte) []byte { // one destination option of n bytes
		h := make([]byte, n)
		h[0], h[1], h[2], h[3] = ProtoUDP, n/8-1, 1, n-4
		return h
	}
	for _, c := range []struct {
		name string
		edit func(b []byte) ([]byte, int)
		want error
	}{
		{"unchanged", whole, nil},
		{"cut", func(b []byte) ([]byte, int) { return whole(b[:53]) }, ErrIPv6Short},
		{"version 4", func(b []byte) ([]byte, int) { b[14] = 0x45; return whole(b) }, ErrIPv6Version},
		{"length one too long", func(b []byte) ([]byte, int) { b[19]++; return whole(b) }, ErrIPv6Length},
		{"no room for UDP", func(b []byte) ([]byte, int) { b[19] = 7; return whole(b) }, ErrUDPShort},
		{"UDP one too long", func(b []byte) ([]byte, int) { b[59]++; return whole(b) }, ErrUDPLength},
		{"Ethernet padding", func(b []byte) ([]byte, int) { return whole(append(b, make([]byte, 18)...)) }, nil},
		{"hop-by-hop options", with(0, ProtoUDP, 0, 5, 2, 0, 0, 1, 0), nil},
		{"both options", with(0, 60, 0, 5, 2, 0, 0, 0, 0, ProtoUDP, 0, 1, 4, 0, 0, 0, 0), nil},
		{"40 bytes of options", with(60, long(40)...), nil},
		{"48 bytes of options", with(60, long(48)...), ErrIPv6Extension},
		{"40 bytes of options in two", with(60, append([]byte{60, 0, 1, 4, 0, 0, 0, 0}, long(40)...)...), ErrIPv6Extension},
		{"hop-by-hop options behind others", with(60, 0, 0, 1, 4, 0, 0, 0, 0, ProtoUDP, 0, 1, 4, 0, 0, 0, 0),
			ErrIPv6Extension},
		{"options beyond the packet", with(60, ProtoUDP, 4, 1, 4, 0, 0, 0, 0), ErrIPv6Extension},
		{"nothing behind the header", func(b []byte) ([]byte, int) { b[20], b[19] = 60, 0; return whole(b) },
			ErrIPv6Extension},
		{"jumbo payload", with(0, ProtoUDP, 0, 0xc2, 4, 0, 1, 0, 0), ErrIPv6Option},
		{"an unknown option to be dropped for", with(60, ProtoUDP, 0, 0x45, 4, 0, 0, 0, 0), ErrIPv6Option},
		{"an unknown option to be skipped", with(60, ProtoUDP, 0, 0x25, 4, 0, 0, 0, 0), nil},
		{"an option beyond its header", with(60, ProtoUDP, 0, 1, 5, 0, 0, 0, 0), ErrIPv6Option},
		{"an option without a length", with(60, ProtoUDP, 0, 1, 3, 0, 0, 0, 1), ErrIPv6Option},
		{"routing header", with(43, ProtoUDP, 0, 0, 0, 0, 0, 0, 0), ErrIPv6Routing},
		{"fragment", with(44, ProtoUDP, 0, 0, 1, 0, 0, 0, 0), ErrIPv6Fragment},
		{"a fragment that is whole", with(44, ProtoUDP, 0, 0, 0, 0, 0, 0, 0), ErrIPv6Fragment},
		{"a fragment behind options", with(60, 44, 0, 1, 4, 0, 0, 0, 0, ProtoUDP, 0, 0, 1, 0, 0, 0, 0), ErrIPv6Fragment},
	} {
		b, n := c.edit(udp6(make([]byte, 10)))
		var f Frame
		if err := f.Parse(b, n); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
			continue
		}
		if c.want == nil && (f.Proto != ProtoUDP || f.PayloadLen != 10 || f.DstPort != 0xc001 ||
			!VerifyUDPChecksum(&f, b[f.PayloadOff-UDPLen:f.PayloadOff+10])) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// TestHeadHoldsAllHeaders: MaxHeaderLen bytes hold all headers of a frame with the most extension headers, and the
// longest RDMAP body of a frame without.
func TestHeadHoldsAllHeaders(t *testing.T) {
	b := withExtensions(udp6(make([]byte, 1000)), 60, append([]byte{ProtoUDP, 4, 1, 36}, make([]byte, 36)...)...)
	var f Frame
	if err := f.Parse(b[:MaxHeaderLen], len(b)); err != nil || f.PayloadOff+TRPExtLen+UntaggedLen > MaxHeaderLen {
		t.Errorf("with extension headers: %v, payload at %d", err, f.PayloadOff)
	}
	b = udp6(make([]byte, 1000))
	if err := f.Parse(b[:MaxHeaderLen], len(b)); err != nil ||
		f.PayloadOff+TRPExtLen+UntaggedLen+AtomicRequestLen > MaxHeaderLen {
		t.Errorf("without: %v, payload at %d", err, f.PayloadOff)
	}
}

func TestEchoReply6(t *testing.T) {
	b := unhex(t, echo6Request)
	want := unhex(t, echo6Reply)
	binary.BigEndian.PutUint32(want[14:], 6<<28) // our flow label
	var f Frame
	if err := f.Parse(b, len(b)); err != nil {
		t.Fatal(err)
	}
	if err := EchoReply(&f, b, macB); err != nil {
		t.Fatal(err)
	}
	sameBytes(t, "the kernel's answer", b, want)
	if err := f.Parse(b, len(b)); err != nil || !errors.Is(EchoReply(&f, b, macA), ErrICMPKind) {
		t.Errorf("an answer is answered (%v)", err)
	}
}

func TestEchoReply6Refusals(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(b []byte) []byte
		want error
	}{
		{"code 1", func(b []byte) []byte { b[55] = 1; return b }, ErrICMPKind},
		{"packet too big", func(b []byte) []byte { b[54] = 2; return b }, ErrICMPKind},
		{"checksum", func(b []byte) []byte { b[60] ^= 4; return b }, ErrICMPChecksum},
		{"short", func(b []byte) []byte { b[19] = 7; return b }, ErrICMPShort},
		{"UDP", func(b []byte) []byte { b[20] = ProtoUDP; b[58], b[59] = 0, 16; return b }, ErrICMPKind},
		{"options", func(b []byte) []byte { return withExtensions(b, 60, ProtoICMPv6, 0, 1, 4, 0, 0, 0, 0) }, ErrICMPRefused},
		{"to a group", func(b []byte) []byte { b[38] = 0xff; return b }, ErrICMPRefused},
		{"from a group", func(b []byte) []byte { b[22] = 0xff; return b }, ErrICMPRefused},
		{"from nobody", func(b []byte) []byte { clear(b[22:38]); return b }, ErrICMPRefused},
		{"from a group station", func(b []byte) []byte { b[6] |= 1; return b }, ErrICMPRefused},
	} {
		b := c.edit(unhex(t, echo6Request))
		before := bytes.Clone(b)
		var f Frame
		if err := f.Parse(b, len(b)); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := EchoReply(&f, b, macB); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		sameBytes(t, c.name+" leaves the frame", b, before)
	}
}
