package roce

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"urdma/wire"
)

// golden are IP packets of the kernel's rxe (captures of Linux 6.1, named per row).
var golden = []struct {
	capture, packet string
	want            Header
	payload         int // bytes
}{
	{"rxe-vec-ops", `45 00 00 40 2a 8f 40 00 40 11 fc 07 0a 09 00 03 0a 09 00 02 eb d7 12 b7 00 2c 00 00 04 30 ff ff 00
		00 00 11
		80 4f 05 7b 61 62 63 64 65 66 67 68 69 6a 6b 6c 6d 6e 6f 70 71 00 00 00 df 37 c2 c1`,
		Header{Opcode: SendOnly, Pad: 3, Dst: 0x11, AckReq: true, PSN: 0x4f057b}, 17},
	{"rxe-vec-imm", `4500004433 1f40004011f3730a0900030a090002ff4012b700300000 0510ffff0000001380d95a5e 11223344
		6162636465666768696a6b6c6d6e6f7071727300 67449b9e`,
		Header{Opcode: SendOnlyImmediate, Pad: 1, Dst: 0x13, AckReq: true, PSN: 0xd95a5e, Immediate: native("11223344")}, 19},
	{"rxe-vec-inv", `45000044358b40004011f1070a0900030a090002e34f12b700300000 1700ffff0000001480b32ed5 0000045f
		6162636465666768696a6b6c6d6e6f7071727374 de73fcab`,
		Header{Opcode: SendOnlyInvalidate, Dst: 0x14, AckReq: true, PSN: 0xb32ed5, Dead: 0x45f}, 20},
	{"rxe-rping-c3", `4500007ce99140 0040113cc90a0900020a090003ea9c12b700680000 0a00ffff0000001180a39986
		00005565838838100000044f00000040
		72646d612d70696e672d303a204142434445464748494a4b4c4d4e4f50515253
		5455565758595a5b5c5d5e5f606162636465666768696a6b6c6d6e6f70717200 184cc45d`,
		Header{Opcode: WriteOnly, Dst: 0x11, AckReq: true, PSN: 0xa39986, VA: 0x556583883810, RKey: 0x44f, Length: 64}, 64},
	{"rxe-rstream", `450000500c0e400040111a790a0900030a090002c4d812b7003c0000 0b00ffff00000026805a9291
		00007f616000301000001ad300000010
		80000180 00001b3bdb7f0000eb1c000000000800 baa655c8`,
		Header{Opcode: WriteOnlyImmediate, Dst: 0x26, AckReq: true, PSN: 0x5a9291, VA: 0x7f6160003010, RKey: 0x1ad3,
			Length: 16, Immediate: native("80000180")}, 16},
	{"rxe-read-bw-64", `4500003cfb3c400040112b5e0a0900030a090002eb1912b700280000 0c00ffff0000001b8065efcc
		000055a0fd7c100000000e1000000040 14c6d302`,
		Header{Opcode: ReadRequest, Dst: 0x1b, AckReq: true, PSN: 0x65efcc, VA: 0x55a0fd7c1000, RKey: 0xe10, Length: 64}, 0},
	{"rxe-read-bw-64", `45000070f69f400040112fc70a0900020a090003eb1912b7005c0000 1000ffff0000001b0065efcc 1f000001
		e107968446eb9afcfe48f367858b599b5f7c18d15fe17a52415442814f412030
		48b6b48ea14f8b9f977e061c095fb768dcd0393bb1b48df308cf745710948859 f50f6db9`,
		Header{Opcode: ResponseOnly, Dst: 0x1b, PSN: 0x65efcc, AETH: AETH{NoCredits, 1}}, 64},
	{"rxe-atomic-lat-cas", `45000030fa7f400040112c270a0900020a090003c49b12b7001c0000 1100ffff00000020003203b2 1f000001
		3507d73d`,
		Header{Opcode: Acknowledge, Dst: 0x20, PSN: 0x3203b2, AETH: AETH{NoCredits, 1}}, 0},
	{"rxe-loss-write-bw-8191", `4500003093f34000401192b30a0900020a090003c09312b7001c0000 1100ffff00000012009ad050
		60000000 93c5b29e`,
		Header{Opcode: Acknowledge, Dst: 0x12, PSN: 0x9ad050, AETH: AETH{NAKSequence, 0}}, 0},
	{"rxe-vec-norecv", `45000030e1b14000401144f50a0900020a090003e00212b7001c0000 1100ffff0000001800709e9a 20000000
		715dfabb`,
		Header{Opcode: Acknowledge, Dst: 0x18, PSN: 0x709e9a, AETH: AETH{NotReady(0), 0}}, 0},
	{"rxe-atomic-lat-cas", `4500004801c74000401124c80a0900030a090002eae912b700340000 1300ffff0000002180847821
		000055b59e067000 00001459 0000000000000000 0000000000000000 0706ae35`,
		Header{Opcode: CompareSwap, Dst: 0x21, AckReq: true, PSN: 0x847821, VA: 0x55b59e067000, RKey: 0x1459}, 0},
	{"rxe-atomic-lat-faa", `45000048003b4000401126540a0900030a090002c99c12b700340000 1400ffff0000001f80e6438d
		0000557b1ef83000 000012eb 0000000000000001 0000000000000000 6dcdb51e`,
		Header{Opcode: FetchAdd, Dst: 0x1f, AckReq: true, PSN: 0xe6438d, VA: 0x557b1ef83000, RKey: 0x12eb, Swap: 1}, 0},
	{"rxe-atomic-lat-cas", `45000038fac3400040112bdb0a0900020a090003eae912b700240000 1200ffff0000002100847821 1f000001
		81156e8399f6b6f5 c8598ff0`,
		Header{Opcode: AtomicAcknowledge, Dst: 0x21, PSN: 0x847821, AETH: AETH{NoCredits, 1}, Original: 0x81156e8399f6b6f5},
		0},
	{"rxe-uc-pingpong", `4500006c0b42400040111b290a0900030a090002c55912b700580000 2400ffff0000002500c17964
		7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b
		7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b dba50f68`,
		Header{Opcode: UC | SendOnly, Dst: 0x25, PSN: 0xc17964}, 64},
	{"made by hand (no rxe has XRC)",
		`4500003400004000401126a30a0900020a090003c00012b700200000 a440ffff0000001180000001 00000007 61626364 98346ac8`,
		Header{Opcode: XRC | SendOnly, Migrated: true, Dst: 0x11, AckReq: true, PSN: 1, SRQ: 7}, 4},
	{"rxe-ud-send-lat-64", `4500003c04ab4000401121f00a0900030a090002d79a12b700280000 6500ffff0000002300000000 01234567
		00000023 00000023 57c59f78 73dc03f6`,
		Header{Opcode: UD | SendOnlyImmediate, Dst: 0x23, QKey: 0x1234567, Src: 0x23, Immediate: native("00000023")}, 4},
}

func native(s string) uint32 {
	b, _ := hex.DecodeString(s)
	return binary.NativeEndian.Uint32(b)
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatalf("bad hex %q: %v", s, err)
	}
	return b
}

const ipv4Heads = wire.IPv4Len + wire.UDPLen

func TestCapturedPackets(t *testing.T) {
	for _, c := range golden {
		b := unhex(t, c.packet)
		ip, packet := b[:ipv4Heads], b[ipv4Heads:]
		var h Header
		from, to, err := h.Payload(packet, len(packet))
		c.want.PKey = DefaultPKey
		if err != nil || h != c.want || to-from != c.payload {
			t.Errorf("%s: %v, %d bytes of payload, expected %d\n got %+v\nwant %+v", c.capture, err, to-from, c.payload, h,
				c.want)
			continue
		}
		out := make([]byte, from)
		if n := h.Put(out); n != from || n != h.Len() || !bytes.Equal(out, packet[:from]) {
			t.Errorf("%s: written as % x, expected % x", c.capture, out[:n], packet[:from])
		}
		var s Sums
		if !s.Right(ip, packet) {
			t.Errorf("%s: CRC %08x, the packet has % x", c.capture, s.Of(ip, packet[:len(packet)-ICRCLen]),
				packet[len(packet)-ICRCLen:])
		}
		if slow := slowICRC(ip, packet[:len(packet)-ICRCLen]); slow != s.Of(ip, packet[:len(packet)-ICRCLen]) {
			t.Errorf("%s: the slow CRC is %08x", c.capture, slow)
		}
		for cut := range from {
			if _, err := h.Parse(packet[:cut]); err == nil {
				t.Errorf("%s: %d of its bytes parse", c.capture, cut)
			}
		}
	}
}

// slowICRC computes the CRC of a whole packet bit by bit.
func slowICRC(ip, packet []byte) uint32 {
	all := append(bytes.Repeat([]byte{255}, 8), ip...)
	mask := []int{1, 8, 10, 11, 26, 27}
	if ip[0]>>4 == 6 {
		all[8] |= 15
		mask = []int{1, 2, 3, 7, 46, 47}
	}
	for _, i := range mask {
		all[8+i] = 255
	}
	all = append(all, packet...)
	all[8+len(ip)+4] = 255
	crc := ^uint32(0)
	for _, b := range all {
		for i := range 8 {
			odd := (crc ^ uint32(b)>>i) & 1
			crc >>= 1
			if odd != 0 {
				crc ^= 0xedb88320
			}
		}
	}
	return ^crc
}

func TestICRC(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	var s Sums
	for range 300 {
		ip, packet := random(ipv4Heads), random(BTHLen+4*r.IntN(1100)+ICRCLen)
		ip[0] = 0x45
		if r.IntN(2) == 0 {
			ip = random(wire.IPv6Len + wire.UDPLen)
			ip[0] = 0x60 | ip[0]&15
		}
		n := len(packet) - ICRCLen
		if got, want := s.Of(ip, packet[:n]), slowICRC(ip, packet[:n]); got != want {
			t.Fatalf("%08x for % x, expected %08x", got, ip, want)
		}
		s.Put(ip, packet)
		if !s.Right(ip, packet) {
			t.Fatal("what Put has written is wrong")
		}
		packet[BTHLen-1+r.IntN(n-BTHLen+1)] ^= 1 << r.IntN(8)
		if s.Right(ip, packet) || s.RightUnseen(ip, packet) && ip[0]>>4 == 6 {
			t.Fatal("a flipped bit goes unnoticed")
		}
	}
}

// TestUnseenIdentification: a UDP socket does not show the IP identification. The CRC is accepted for any
// identification, and an error in the packet is still detected.
func TestUnseenIdentification(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	var s Sums
	unnoticed := 0
	const tries = 3000
	for range tries {
		b := unhex(t, golden[r.IntN(len(golden))].packet)
		ip, packet := b[:ipv4Heads], b[ipv4Heads:]
		binary.BigEndian.PutUint16(ip[4:], uint16(r.Uint32()))
		ip[6] = byte(r.IntN(2)) << 6
		s.Put(ip, packet)
		ip[4], ip[5], ip[6] = 0, 0, 1<<6
		if !s.RightUnseen(ip, packet) {
			t.Fatalf("not taken: % x", b)
		}
		for n := 1 + r.IntN(8); n > 0; n-- {
			packet[BTHLen-1+r.IntN(len(packet)-BTHLen+1)] ^= byte(1 + r.IntN(255))
		}
		if s.RightUnseen(ip, packet) {
			unnoticed++
		}
	}
	if unnoticed > 5 {
		t.Errorf("%d of %d wrong packets go unnoticed", unnoticed, tries)
	}
}

// TestRenumber: after Renumber the CRC fits the packet with the new identification, and Unseen finds that
// identification.
func TestRenumber(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	var s, seen Sums
	was := uint16(0)
	for i := range 3000 {
		b := unhex(t, golden[r.IntN(len(golden))].packet)
		ip, packet := b[:ipv4Heads], b[ipv4Heads:]
		n := len(packet) - ICRCLen
		ip[6] = 1 << 6
		is := uint16(i % 64) // kernels count up
		if i%3 == 0 {
			is = uint16(r.Uint32())
		}
		binary.BigEndian.PutUint16(ip[4:], was)
		s.Put(ip, packet)
		Renumber(packet, was, is)
		binary.BigEndian.PutUint16(ip[4:], is)
		if got, want := binary.LittleEndian.Uint32(packet[n:]), slowICRC(ip, packet[:n]); got != want {
			t.Fatalf("%08x once %d is %d, expected %08x", got, was, is, want)
		}
		ip[4], ip[5] = 0, 0
		if !seen.RightUnseen(ip, packet) {
			t.Fatalf("not taken with %d: % x", is, b)
		}
		if number, whole, ok := seen.Unseen(ip, packet); number != is || !whole || !ok {
			t.Fatalf("found %d, %v and %v in place of %d", number, whole, ok, is)
		}
		was = is
	}
}

func TestPSN(t *testing.T) {
	for _, c := range []struct {
		a, b PSN
		diff int32
	}{{0, 0, 0}, {5, 3, 2}, {0, 0xffffff, 1}, {0xffffff, 0, -1}, {0x800000, 1, 0x7fffff}, {0x7fffff, 0, 0x7fffff},
		{0, 0x7fffff, -0x7fffff}} {
		if got := c.a.Sub(c.b); got != c.diff {
			t.Errorf("%#x - %#x is %d, expected %d", c.a, c.b, got, c.diff)
		}
	}
	if p := PSN(0xfffffe).Add(5); p != 3 {
		t.Errorf("wraps to %#x", p)
	}
}

// TestRefused: Payload names the error of each malformed packet.
func TestRefused(t *testing.T) {
	whole := unhex(t, golden[0].packet)[ipv4Heads:]
	for _, c := range []struct {
		name string
		turn func(b []byte) []byte
		want error
	}{
		{"version", func(b []byte) []byte { b[1] |= 1; return b }, ErrVersion},
		{"opcode", func(b []byte) []byte { b[0] = 0x1f; return b }, ErrOpcode},
		{"reliable datagram", func(b []byte) []byte { b[0] |= 2 << 5; return b }, ErrOpcode},
		{"padding", func(b []byte) []byte { return b[:BTHLen+ICRCLen] }, ErrPadding},
		{"words", func(b []byte) []byte { return b[:BTHLen+ICRCLen+3] }, ErrAligned},
		{"CRC", func(b []byte) []byte { return b[:BTHLen+3] }, ErrShort},
		{"extension header", func(b []byte) []byte { b[0] = byte(FetchAdd); return b[:BTHLen+27] }, ErrShort},
	} {
		b := c.turn(bytes.Clone(whole))
		var h Header
		if _, _, err := h.Payload(b, len(b)); err != c.want {
			t.Errorf("%s: %v, expected %v", c.name, err, c.want)
		}
	}
}

// FuzzHeader: no input makes Payload panic, and an accepted header is unchanged after Put and Parse.
func FuzzHeader(f *testing.F) {
	for _, c := range golden {
		f.Add(unhex(f, c.packet)[ipv4Heads:])
	}
	f.Add([]byte{byte(XRC | FetchAdd)})
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again Header
		from, to, err := h.Payload(b, len(b))
		if err != nil {
			return
		}
		if from > to || to > len(b)-ICRCLen {
			t.Fatalf("payload from %d to %d of %d bytes", from, to, len(b))
		}
		out := make([]byte, MaxHeaderLen)
		if n := h.Put(out); n != from {
			t.Fatalf("%d bytes are written as %d", from, n)
		}
		if n, err := again.Parse(out); err != nil || n != from || again != h {
			t.Fatalf("%v\nfirst  %+v\nsecond %+v", err, h, again)
		}
	})
}

// TestNothingAllocates: headers and CRCs are computed for every packet.
func TestNothingAllocates(t *testing.T) {
	b := unhex(t, golden[3].packet)
	ip, packet := b[:ipv4Heads], b[ipv4Heads:]
	var s Sums
	var h Header
	if n := testing.AllocsPerRun(100, func() {
		if _, _, err := h.Payload(packet, len(packet)); err != nil || !s.RightUnseen(ip, packet) {
			t.Fatal("refused")
		}
		h.Put(packet)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkICRC(b *testing.B) {
	ip, packet := make([]byte, ipv4Heads), make([]byte, BTHLen+1024+ICRCLen)
	ip[0] = 0x45
	b.SetBytes(1024)
	var s Sums
	for b.Loop() {
		s.Put(ip, packet)
	}
}

// BenchmarkUnseen measures packets whose identification the receiver must find.
func BenchmarkUnseen(b *testing.B) {
	ip, packet := make([]byte, ipv4Heads), make([]byte, BTHLen+1024+ICRCLen)
	ip[0], ip[4], ip[6] = 0x45, 0x77, 1<<6
	b.SetBytes(1024)
	var s Sums
	s.Put(ip, packet)
	ip[4] = 0
	for b.Loop() {
		if !s.RightUnseen(ip, packet) {
			b.Fatal("refused")
		}
	}
}
