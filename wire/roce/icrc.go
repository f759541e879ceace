package roce

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"sync"

	"urdma/wire"
)

// Sums computes invariant CRCs (annex A17): a CRC-32 over the packet from its IP
// header on, with ones in place of what routers may change, behind eight bytes of ones
// that stand for InfiniBand's local routing header. The zero Sums is ready; it has room
// for one computation at a time, and remembers the CRC of the last IP and UDP headers, which
// the packets of a message have in common where a socket makes them.
type Sums struct {
	ip    [wire.IPv6Len + wire.UDPLen]byte
	ipLen int
	ipSum uint32 // of the ones and ip, its last bytes apart
	head  [ones + wire.IPv6Len + wire.UDPLen]byte
	last  uint16 // identification of the last packet in RightUnseen
}

// ones is how many bytes of ones are in front.
const ones = 8

// Of is the CRC of a packet: ip are its IP and UDP headers, without options or
// extension headers, packet the UDP payload without the CRC, at least BTHLen bytes.
func (s *Sums) Of(ip, packet []byte) uint32 {
	if !bytes.Equal(ip, s.ip[:s.ipLen]) {
		s.ipLen = copy(s.ip[:], ip)
		s.ipSum = s.begin(ip)
	}
	n := BTHLen + (len(packet)-BTHLen)&15
	h := s.head[:lengths+n]
	binary.BigEndian.PutUint16(h, binary.BigEndian.Uint16(ip[len(ip)-lengths:]))
	h[2], h[3] = 0xff, 0xff // UDP's checksum
	copy(h[lengths:], packet)
	h[lengths+4] = 0xff // FECN, BECN, and what is reserved
	return crc32.Update(crc32.Update(s.ipSum, crc32.IEEETable, h), crc32.IEEETable, packet[n:])
}

// lengths are the last bytes of the UDP header: with them the transport header has 16 bytes, and
// hash/crc32 computes 8 or, of what is longer, 16 at a time.
const lengths = 4

// begin is the CRC of what stands in front of the UDP payload.
func (s *Sums) begin(ip []byte) uint32 {
	binary.BigEndian.PutUint64(s.head[:], ^uint64(0))
	h := s.head[ones:]
	n := copy(h, ip)
	if ip[0]>>4 == 4 {
		h[1], h[8] = 0xff, 0xff                    // type of service, time to live
		binary.BigEndian.PutUint16(h[10:], 0xffff) // header checksum
	} else {
		h[0] |= 0x0f // traffic class, flow label
		h[1], h[2], h[3] = 0xff, 0xff, 0xff
		h[7] = 0xff // hop limit
	}
	return crc32.ChecksumIEEE(s.head[:ones+n-lengths])
}

// Put appends the CRC to a packet: b is the UDP payload with the four bytes that it goes
// to. It stands there with the least significant byte first.
func (s *Sums) Put(ip, b []byte) {
	n := len(b) - ICRCLen
	binary.LittleEndian.PutUint32(b[n:], s.Of(ip, b[:n]))
}

// Right reports whether the CRC that ends a UDP payload is right.
func (s *Sums) Right(ip, b []byte) bool {
	n := len(b) - ICRCLen
	return binary.LittleEndian.Uint32(b[n:]) == s.Of(ip, b[:n])
}

// RightUnseen is Right for packets of a UDP socket, whose IPv4 header the kernel does
// not show: ip has an identification of 0 and don't-fragment set. A CRC that is right
// for any identification, with don't-fragment or without, is taken: 17 of the 32 bits
// of an error go unnoticed. Of packets that a kernel has cut out of one send, the next in
// order is recognised soonest.
func (s *Sums) RightUnseen(ip, b []byte) bool {
	n := len(b) - ICRCLen
	diff := binary.LittleEndian.Uint32(b[n:]) ^ s.Of(ip, b[:n])
	switch {
	case diff == 0:
		s.last = 0
		return true
	case ip[0]>>4 != 4:
		return false
	case diff == ofNumber(s.last+1, n):
		s.last++
		return true
	}
	number, _, ok := unseen(diff, n)
	s.last = number
	return ok
}

// Unseen is the identification of a packet, and whether it has don't-fragment; ok is false where
// RightUnseen is.
func (s *Sums) Unseen(ip, b []byte) (number uint16, whole, ok bool) {
	n := len(b) - ICRCLen
	if n < BTHLen {
		return 0, true, false
	}
	return unseen(binary.LittleEndian.Uint32(b[n:])^s.Of(ip, b[:n]), n)
}

// unseen finds the identification with which the CRC of a packet of n bytes differs by diff from
// that of an identification of 0 and don't-fragment.
func unseen(diff uint32, n int) (number uint16, whole, ok bool) {
	// CRCs are linear: diff is that of the identification alone, carried on over all
	// bytes behind it. Taken back over them, it is those two bytes.
	if v := undo(diff, behindNumber+n+2); v>>16 == 0 {
		return bits.ReverseBytes16(uint16(v)), true, true
	}
	// The byte behind the identification has don't-fragment.
	v := undo(diff^redo(1<<6, behindNumber+n), behindNumber+n+2)
	return bits.ReverseBytes16(uint16(v)), false, v>>16 == 0
}

// behindNumber is how many bytes of the IPv4 and UDP headers follow the identification.
const behindNumber = wire.IPv4Len + wire.UDPLen - 6

// Renumber changes the CRC at the end of a UDP payload as it takes for another identification in
// the IPv4 header.
func Renumber(b []byte, was, is uint16) {
	n := len(b) - ICRCLen
	binary.LittleEndian.PutUint32(b[n:], binary.LittleEndian.Uint32(b[n:])^ofNumber(was^is, n))
}

// ofNumber is the difference that an identification makes to the CRC of a packet of n bytes. A
// byte's lowest bit is x^31 as it enters.
func ofNumber(number uint16, n int) uint32 {
	const above = (31 - 7) / 8 // bytes, of its highest
	at := shifts()[0][behindNumber+n+1+above:]
	return timesByte(at[0], uint8(number)) ^ timesByte(at[1], uint8(number>>8))
}

// timesByte is the product of a and of b, whose highest bit stands for 1 and lowest for x^7.
func timesByte(a uint32, b uint8) (product uint32) {
	for ; b != 0; b <<= 1 {
		product ^= a & uint32(int32(uint32(b)<<24)>>31)
		a = a>>1 ^ polynomial&-(a&1)
	}
	return product
}

// Arithmetic modulo the CRC's polynomial, bits reversed: 1<<31 is x^0.
const polynomial = crc32.IEEE

func times(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		product ^= b & uint32(int32(a)>>31)
		b = b>>1 ^ polynomial&-(b&1)
	}
	return product
}

const maxBehind = 1 << 16 // an IP packet

// shifts are x to the power of plus and minus eight times the index.
var shifts = sync.OnceValue(func() *[2][maxBehind]uint32 {
	var all [2][maxBehind]uint32
	forth, back := uint32(1<<31), uint32(1<<31)
	for i := range maxBehind {
		all[0][i], all[1][i] = forth, back
		for range 8 {
			forth = forth>>1 ^ polynomial&-(forth&1)
			// The bit that was shifted out shows in the polynomial's highest.
			top := back >> 31
			back = (back^polynomial&-top)<<1 | top
		}
	}
	return &all
})

// redo carries the difference of a byte on over itself and the bytes behind it.
func redo(v uint32, n int) uint32 { return times(shifts()[0][n], v) }

// undo takes a difference back over n bytes.
func undo(diff uint32, n int) uint32 { return times(shifts()[1][n], diff) }
