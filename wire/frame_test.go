package wire

import (
	"encoding/binary"
	"errors"
	"testing"
)

// roceFrame is a UDP frame of capture rxe-atomic-lat-cas: rxe sends UDP checksum 0. The last 228 bytes are left
// out; length is the original length.
const (
	roceFrame = `52 54 00 a8 28 2f 52 54 00 e0 a7 44 08 00
		45 00 01 34 01 98 40 00 40 11 24 0b 0a 09 00 03 0a 09 00 02
		d8 72 12 b7 01 20 00 00
		64 00 ff ff 00 00 00 01 80 00 00 32 80 01 00 00 00 00 00 01 01 07 02 03
		00 00 00 00 00 00 00 02 d5 53 0b d7 00 10 00 00 00 00 00 00 d7 0b 53 d5
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
		00 00 00 00 00 00 00 00 00 00 00 00 00 00`
	roceFrameLen = 322

	// tcpFrame is the SYN of capture rxe-rc-pingpong.
	tcpFrame = `52 54 00 a8 28 2f 52 54 00 e0 a7 44 08 00
		45 00 00 3c 97 6f 40 00 40 06 8f 36 0a 09 00 03 0a 09 00 02
		cd 72 48 53 71 ad 42 c1 00 00 00 00 a0 02 fa f0 2f f9 00 00
		02 04 05 b4 04 02 08 0a d3 7b 6b 4f 00 00 00 00 01 03 03 07`
)

var (
	vm1MAC = MAC{0x52, 0x54, 0, 0xa8, 0x28, 0x2f}
	vm2MAC = MAC{0x52, 0x54, 0, 0xe0, 0xa7, 0x44}
	vm1IP  = IPv4{10, 9, 0, 2}
	vm2IP  = IPv4{10, 9, 0, 3}
)

func TestFrameGolden(t *testing.T) {
	for _, c := range []struct {
		name, hex string
		length    int
		want      Frame
	}{
		{"rxe-atomic-lat-cas", roceFrame, roceFrameLen, Frame{
			Dst: vm1MAC, Src: vm2MAC, Type: EtherTypeIPv4, IPHeaderOff: 14, IPHeaderLen: 20,
			Proto: ProtoUDP, TTL: 64, SrcIP: vm2IP, DstIP: vm1IP,
			SrcPort: 55410, DstPort: 4791, PayloadOff: 42, PayloadLen: 280,
		}},
		{"rxe-rc-pingpong", tcpFrame, 74, Frame{
			Dst: vm1MAC, Src: vm2MAC, Type: EtherTypeIPv4, IPHeaderOff: 14, IPHeaderLen: 20,
			Proto: 6, TTL: 64, SrcIP: vm2IP, DstIP: vm1IP, PayloadOff: 34, PayloadLen: 40,
		}},
	} {
		b := append(unhex(t, c.hex), make([]byte, MaxHeaderLen)...) // zeros instead of the omitted payload
		var f Frame
		if err := f.Parse(b, c.length); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if f != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, f, c.want)
		}
		ip := b[f.IPHeaderOff : f.IPHeaderOff+f.IPHeaderLen]
		if !VerifyIPv4Checksum(ip) {
			t.Errorf("%s: IPv4 checksum of a capture found wrong", c.name)
		}
		ip[8]--
		if VerifyIPv4Checksum(ip) {
			t.Errorf("%s: IPv4 checksum found right with another TTL", c.name)
		}
	}
}

func TestUDPHeaderMatchesCapture(t *testing.T) {
	var h UDPHeader
	h.Init(vm2MAC, vm1MAC, vm2IP, vm1IP, 55410, 4791)
	got := make([]byte, UDPHeaderLen)
	h.Put(got, 280, 0x0198)
	sameBytes(t, "headers of rxe-atomic-lat-cas", got, unhex(t, roceFrame)[:UDPHeaderLen])
}

// udpFrame builds a frame whose payload is n bytes counting up.
func udpFrame(n int, id uint16) []byte {
	var h UDPHeader
	h.Init(vm1MAC, vm2MAC, vm1IP, vm2IP, 4791, 0xc001)
	b := make([]byte, UDPHeaderLen+n)
	h.Put(b, n, id)
	for i := range n {
		b[UDPHeaderLen+i] = byte(i + n)
	}
	return b
}

func TestFrameRefusals(t *testing.T) {
	whole := func(b []byte) ([]byte, int) { return b, len(b) }
	for _, c := range []struct {
		name string
		edit func(b []byte) ([]byte, int)
		want error
	}{
		{"unchanged", whole, nil},
		{"13 bytes", func(b []byte) ([]byte, int) { return b[:13], 13 }, ErrFrameShort},
		{"negative length", func(b []byte) ([]byte, int) { return b, -1 }, ErrFrameShort},
		{"header copy too short", func(b []byte) ([]byte, int) { return b[:41], len(b) }, ErrHeaderCopy},
		{"802.1Q", func(b []byte) ([]byte, int) { b[12], b[13] = 0x81, 0; return whole(b) }, ErrVLAN},
		{"802.1ad", func(b []byte) ([]byte, int) { b[12], b[13] = 0x88, 0xa8; return whole(b) }, ErrVLAN},
		{"other EtherType", func(b []byte) ([]byte, int) { b[12], b[13] = 0x88, 0xcc; return whole(b) }, nil},
		{"IPv4 cut", func(b []byte) ([]byte, int) { return whole(b[:33]) }, ErrIPv4Short},
		{"version 6", func(b []byte) ([]byte, int) { b[14] = 0x65; return whole(b) }, ErrIPv4Version},
		{"header length 16", func(b []byte) ([]byte, int) { b[14] = 0x44; return whole(b) }, ErrIPv4HeaderLen},
		{"header beyond total", func(b []byte) ([]byte, int) { b[14] = 0x4f; return whole(b) }, ErrIPv4HeaderLen},
		{"total one too long", func(b []byte) ([]byte, int) { b[17]++; return whole(b) }, ErrIPv4TotalLen},
		{"total below header", func(b []byte) ([]byte, int) { b[17] = 19; return whole(b) }, ErrIPv4HeaderLen},
		{"more fragments", func(b []byte) ([]byte, int) { b[20] |= 0x20; return whole(b) }, ErrIPv4Fragment},
		{"last fragment", func(b []byte) ([]byte, int) { b[21] = 1; return whole(b) }, ErrIPv4Fragment},
		{"no room for UDP", func(b []byte) ([]byte, int) { b[17] = 27; return whole(b) }, ErrUDPShort},
		{"UDP length 7", func(b []byte) ([]byte, int) { b[39] = 7; return whole(b) }, ErrUDPLength},
		{"UDP one too long", func(b []byte) ([]byte, int) { b[39]++; return whole(b) }, ErrUDPLength},
		{"UDP shorter than IPv4", func(b []byte) ([]byte, int) { b[39]--; return whole(b) }, nil},
		{"Ethernet padding", func(b []byte) ([]byte, int) { return whole(append(b, make([]byte, 18)...)) }, nil},
	} {
		b, n := c.edit(udpFrame(10, 1))
		var f Frame
		if err := f.Parse(b, n); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestFrameTrimsPadding(t *testing.T) {
	b := append(udpFrame(3, 1), make([]byte, 15)...)
	var f Frame
	if err := f.Parse(b, len(b)); err != nil {
		t.Fatal(err)
	}
	if f.PayloadOff != 42 || f.PayloadLen != 3 {
		t.Errorf("payload %d bytes at %d, want 3 at 42", f.PayloadLen, f.PayloadOff)
	}
	b[39] = 8 + 1 // and longer than the UDP length, where that is shorter than IPv4's
	if err := f.Parse(b, len(b)); err != nil || f.PayloadLen != 1 {
		t.Errorf("payload %d bytes (%v), want 1", f.PayloadLen, err)
	}
}

// withOptions puts n bytes of IPv4 options into a frame.
func withOptions(b []byte, n int) []byte {
	out := append([]byte{}, b[:34]...)
	for range n {
		out = append(out, 1) // no operation
	}
	out = append(out, b[34:]...)
	ip := out[14 : 34+n]
	ip[0] = 0x40 | byte(len(ip)/4)
	binary.BigEndian.PutUint16(ip[2:], uint16(len(out)-14))
	ip[10], ip[11] = 0, 0
	binary.BigEndian.PutUint16(ip[10:], ^Fold(Checksum(0, ip)))
	return out
}

func TestFrameToleratesOptions(t *testing.T) {
	for n := 4; n <= 40; n += 4 {
		b := withOptions(udpFrame(1000, 1), n)
		var f Frame
		if err := f.Parse(b[:MaxHeaderLen], len(b)); err != nil {
			t.Fatalf("%d bytes of options: %v", n, err)
		}
		if f.IPHeaderLen != 20+n || f.PayloadOff != 42+n || f.PayloadLen != 1000 || f.DstPort != 0xc001 {
			t.Errorf("%d bytes of options: %+v", n, f)
		}
		if !VerifyIPv4Checksum(b[14 : 34+n]) {
			t.Errorf("%d bytes of options: checksum found wrong", n)
		}
	}
}

func TestUDPHeaderChecksums(t *testing.T) {
	r := newRand(t)
	for range 2000 {
		n := r.IntN(1500)
		if r.IntN(20) == 0 {
			n = MaxUDPPayload - r.IntN(3)
		}
		b := udpFrame(n, uint16(r.Uint32()))
		var f Frame
		if err := f.Parse(b, len(b)); err != nil {
			t.Fatal(err)
		}
		if !VerifyIPv4Checksum(b[14:34]) {
			t.Fatalf("IPv4 checksum wrong: % x", b[14:34])
		}
		if f.UDPChecksum != 0 || !VerifyUDPChecksum(&f, b[34:]) {
			t.Fatalf("UDP checksum 0 not accepted")
		}
		SetUDPChecksum(b)
		if err := f.Parse(b, len(b)); err != nil || f.UDPChecksum == 0 || !VerifyUDPChecksum(&f, b[34:]) {
			t.Fatalf("%d bytes: UDP checksum %#x found wrong (%v)", n, f.UDPChecksum, err)
		}
		if i := 34 + r.IntN(len(b)-34); i < 40 || i > 41 {
			b[i] ^= 1 << r.IntN(8)
			if VerifyUDPChecksum(&f, b[34:]) {
				t.Fatalf("a changed bit in byte %d went unnoticed", i)
			}
		}
	}
}

// The sum of this datagram is 0xffff before complementing, so its checksum is
// 0, which is sent as all ones (RFC 768).
func TestUDPChecksumZeroIsSentAsOnes(t *testing.T) {
	b := udpFrame(2, 7)
	b[42], b[43] = 0, 0
	SetUDPChecksum(b)
	copy(b[42:44], b[40:42])
	SetUDPChecksum(b)
	if b[40] != 0xff || b[41] != 0xff {
		t.Fatalf("checksum % x, want ff ff", b[40:42])
	}
	var f Frame
	if err := f.Parse(b, len(b)); err != nil || !VerifyUDPChecksum(&f, b[34:]) {
		t.Errorf("not accepted (%v)", err)
	}
}

// A known datagram, summed by hand: 10.9.0.2:4791 to 10.9.0.3:49153, "ab".
// Pseudo header 0a09+0002+0a09+0003+0011+000a = 1432; UDP 12b7+c001+000a =
// d2c2; payload 6162; total 14856 folds to 4857; complement b7a8.
func TestUDPChecksumByHand(t *testing.T) {
	b := udpFrame(2, 7)
	copy(b[42:], "ab")
	SetUDPChecksum(b)
	sameBytes(t, "checksum", b[40:42], []byte{0xb7, 0xa8})
}

func TestVerifyUDPChecksumWantsTheWholeDatagram(t *testing.T) {
	b := udpFrame(20, 1)
	SetUDPChecksum(b)
	var f Frame
	if err := f.Parse(b, len(b)); err != nil {
		t.Fatal(err)
	}
	if VerifyUDPChecksum(&f, b[34:61]) || VerifyUDPChecksum(&f, nil) {
		t.Error("part of a datagram found right")
	}
}

func TestAddressText(t *testing.T) {
	if s := vm1MAC.String(); s != "52:54:00:a8:28:2f" {
		t.Error(s)
	}
	if s := vm1IP.String(); s != "10.9.0.2" {
		t.Error(s)
	}
	if !Broadcast.IsGroup() || vm1MAC.IsGroup() || vm1IP.IsGroup() || !(IPv4{255, 255, 255, 255}).IsGroup() ||
		!(IPv4{}).IsGroup() {
		t.Error("IsGroup")
	}
}

// TestUnfinishedChecksum: which checksums a card has to complete, and where they stand.
func TestUnfinishedChecksum(t *testing.T) {
	pseudo := func(b []byte, addresses, length int) uint16 { // of both addresses and protocol number 6
		sum := uint32(ProtoTCP + length)
		for at := addresses; at < len(b)-length; at += 2 {
			sum += uint32(binary.BigEndian.Uint16(b[at:]))
		}
		sum = sum>>16 + sum&0xffff
		return uint16(sum>>16 + sum)
	}
	for _, c := range []struct {
		family, frame string // with a complete checksum
		addresses     int    // where they begin
	}{
		{"IPv4", `00 00 00 00 00 00 00 00 00 00 00 00 08 00
			45 00 00 2f 00 00 40 00 40 06 26 c7 0a 00 00 01 0a 00 00 02
			00 01 00 02 00 00 00 00 00 00 00 00 50 00 ff ff de a8 00 00 70 61 79 6c 6f 61 64`, EthernetLen + 12},
		{"IPv6", `00 00 00 00 00 00 00 00 00 00 00 00 86 dd
			60 00 00 00 00 1b 06 40 fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01
			fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02
			00 01 00 02 00 00 00 00 00 00 00 00 50 00 ff ff f8 a6 00 00 70 61 79 6c 6f 61 64`, EthernetLen + 8},
	} {
		b := unhex(t, c.frame)
		if sum, at := UnfinishedChecksum(b); sum != 0 || at != 0 {
			t.Errorf("%s: a complete checksum is to be computed at %d, %d", c.family, sum, at)
		}
		from := len(b) - TCPLen - len("payload")
		binary.BigEndian.PutUint16(b[from+16:], pseudo(b, c.addresses, TCPLen+len("payload")))
		if sum, at := UnfinishedChecksum(b); sum != from || at != 16 {
			t.Errorf("%s: an unfinished one is to be computed at %d, %d, expected %d, 16", c.family, sum, at, from)
		}
		for cut := range b {
			UnfinishedChecksum(b[:cut])
		}
	}
}
