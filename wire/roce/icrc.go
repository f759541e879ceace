package roce

import (
	"encoding/binary"
	"hash/crc32"
	"sync"

	"urdma/wire"
)

// Sums computes invariant CRCs (annex A17): a CRC-32 over the packet from its IP
// header on, with ones in place of what routers may change, behind eight bytes of ones
// that stand for InfiniBand's local routing header. The zero Sums is ready; it has room
// for one computation at a time.
type Sums struct {
	head [ones + wire.IPv6Len + wire.UDPLen + BTHLen + 16]byte
}

// ones is how many bytes of ones are in front.
const ones = 8

// least is from how many bytes on a CRC is computed 16 bytes at a time (hash/crc32). The head
// alone is shorter, and a multiple of 16 with IPv4.
const least = 64

// Of is the CRC of a packet: ip are its IP and UDP headers, without options or
// extension headers, packet the UDP payload without the CRC, at least BTHLen bytes.
func (s *Sums) Of(ip, packet []byte) uint32 {
	binary.BigEndian.PutUint64(s.head[:], ^uint64(0))
	h := s.head[ones:]
	n := copy(h, ip)
	if ip[0]>>4 == 4 {
		h[1], h[8] = 0xff, 0xff                                // type of service, time to live
		binary.BigEndian.PutUint16(h[10:], 0xffff)             // header checksum
		binary.BigEndian.PutUint16(h[wire.IPv4Len+6:], 0xffff) // UDP's
	} else {
		h[0] |= 0x0f // traffic class, flow label
		h[1], h[2], h[3] = 0xff, 0xff, 0xff
		h[7] = 0xff // hop limit
		binary.BigEndian.PutUint16(h[wire.IPv6Len+6:], 0xffff)
	}
	some := min(len(packet), max(BTHLen, least-ones-n))
	copy(h[n:], packet[:some])
	h[n+4] = 0xff // FECN, BECN, and what is reserved
	sum := crc32.ChecksumIEEE(s.head[:ones+n+some])
	return crc32.Update(sum, crc32.IEEETable, packet[some:])
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
// of an error go unnoticed.
func (s *Sums) RightUnseen(ip, b []byte) bool {
	n := len(b) - ICRCLen
	diff := binary.LittleEndian.Uint32(b[n:]) ^ s.Of(ip, b[:n])
	if diff == 0 || ip[0]>>4 != 4 {
		return diff == 0
	}
	// CRCs are linear: diff is that of the identification alone, carried on over all
	// bytes behind it. Taken back over them, it is those two bytes.
	const fieldEnd = 6 // of the identification in the IP header
	behind := len(ip) - fieldEnd + n
	if undo(diff, behind+2)>>16 == 0 {
		return true
	}
	// The byte behind the identification has don't-fragment.
	return undo(diff^redo(1<<6, behind), behind+2)>>16 == 0
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
