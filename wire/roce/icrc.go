package roce

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"sync"

	"urdma/wire"
)

// Sums computes invariant CRCs (annex A17). The CRC-32 covers eight bytes of ones, in place of InfiniBand's local
// routing header, and the packet from its IP header on, with ones in place of fields that routers may change. The
// zero Sums is ready for use, one computation at a time. It keeps the CRC of the last IP and UDP headers, because
// the packets of a message that a socket sends have these in common.
type Sums struct {
	ip    [wire.IPv6Len + wire.UDPLen]byte
	ipLen int
	ipSum uint32 // CRC of the ones and of ip without its last bytes
	head  [ones + wire.IPv6Len + wire.UDPLen]byte
	last  uint16 // identification of the last packet in RightUnseen
}

// ones is the number of leading bytes of ones.
const ones = 8

// Of returns the CRC of a packet. ip are its IP and UDP headers, without options or extension headers; packet is
// the UDP payload without the CRC, at least BTHLen bytes.
func (s *Sums) Of(ip, packet []byte) uint32 {
	if !bytes.Equal(ip, s.ip[:s.ipLen]) {
		s.ipLen = copy(s.ip[:], ip)
		s.ipSum = s.begin(ip)
	}
	n := BTHLen + (len(packet)-BTHLen)&15
	h := s.head[:lengths+n]
	binary.BigEndian.PutUint16(h, binary.BigEndian.Uint16(ip[len(ip)-lengths:]))
	h[2], h[3] = 0xff, 0xff // UDP checksum
	copy(h[lengths:], packet)
	h[lengths+4] = 0xff // FECN, BECN and reserved bits
	return crc32.Update(crc32.Update(s.ipSum, crc32.IEEETable, h), crc32.IEEETable, packet[n:])
}

// lengths is the size of the last part of the UDP header, which is summed with the transport header: together 16
// bytes, as hash/crc32 is fastest with multiples of 16.
const lengths = 4

// begin returns the CRC of all that precedes the UDP payload.
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

// Put writes the CRC into the last four bytes of b, the UDP payload, least significant byte first.
func (s *Sums) Put(ip, b []byte) {
	n := len(b) - ICRCLen
	binary.LittleEndian.PutUint32(b[n:], s.Of(ip, b[:n]))
}

// Right reports whether the CRC at the end of a UDP payload is correct.
func (s *Sums) Right(ip, b []byte) bool {
	n := len(b) - ICRCLen
	return binary.LittleEndian.Uint32(b[n:]) == s.Of(ip, b[:n])
}

// RightUnseen is Right for packets from a UDP socket, where the kernel does not show the IPv4 header: ip has
// identification 0 and don't-fragment set. It accepts a CRC that is correct for any identification, with
// don't-fragment or without. Of 32 bits of the CRC, 17 therefore detect no errors. It tries the next identification
// first, because a kernel that cuts one send into packets numbers them consecutively.
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

// Unseen returns the identification of a packet, and whether it has don't-fragment set. ok is false if the CRC is
// wrong (RightUnseen).
func (s *Sums) Unseen(ip, b []byte) (number uint16, whole, ok bool) {
	n := len(b) - ICRCLen
	if n < BTHLen {
		return 0, true, false
	}
	return unseen(binary.LittleEndian.Uint32(b[n:])^s.Of(ip, b[:n]), n)
}

// unseen finds the identification for which a packet's CRC differs by diff from the CRC for identification 0 with
// don't-fragment. n is the length of the packet.
func unseen(diff uint32, n int) (number uint16, whole, ok bool) {
	// CRCs are linear: diff is the CRC of the identification alone, carried on over all bytes behind it. Undoing
	// those bytes gives the identification.
	if v := undo(diff, behindNumber+n+2); v>>16 == 0 {
		return bits.ReverseBytes16(uint16(v)), true, true
	}
	// Don't-fragment is in the byte behind the identification.
	v := undo(diff^redo(1<<6, behindNumber+n), behindNumber+n+2)
	return bits.ReverseBytes16(uint16(v)), false, v>>16 == 0
}

// behindNumber is the number of IPv4 and UDP header bytes behind the identification.
const behindNumber = wire.IPv4Len + wire.UDPLen - 6

// Renumber corrects the CRC at the end of a UDP payload for a changed identification in the IPv4 header.
func Renumber(b []byte, was, is uint16) {
	n := len(b) - ICRCLen
	binary.LittleEndian.PutUint32(b[n:], binary.LittleEndian.Uint32(b[n:])^ofNumber(was^is, n))
}

// ofNumber is the difference that an identification makes to the CRC of a packet of n bytes. The lowest bit of a
// byte enters the CRC as x^31.
func ofNumber(number uint16, n int) uint32 {
	const above = (31 - 7) / 8 // number of bytes above its highest bit
	at := shifts()[0][behindNumber+n+1+above:]
	return timesByte(at[0], uint8(number)) ^ timesByte(at[1], uint8(number>>8))
}

// timesByte multiplies a by b, in which the highest bit stands for 1 and the lowest for x^7.
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

const maxBehind = 1 << 16 // longest IP packet

// shifts[0][i] is x^(8i), shifts[1][i] is x^(-8i).
var shifts = sync.OnceValue(func() *[2][maxBehind]uint32 {
	var all [2][maxBehind]uint32
	forth, back := uint32(1<<31), uint32(1<<31)
	for i := range maxBehind {
		all[0][i], all[1][i] = forth, back
		for range 8 {
			forth = forth>>1 ^ polynomial&-(forth&1)
			// The bit that was shifted out is the highest bit of the polynomial.
			top := back >> 31
			back = (back^polynomial&-top)<<1 | top
		}
	}
	return &all
})

// redo carries the difference of a byte on over that byte and the following ones, n in all.
func redo(v uint32, n int) uint32 { return times(shifts()[0][n], v) }

// undo takes a difference back over n bytes.
func undo(diff uint32, n int) uint32 { return times(shifts()[1][n], diff) }
