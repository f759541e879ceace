package reliabletest

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"

	"urdma/wire"
)

// Packet is a packet on a link: a data packet, with a segment or without, or a SACK. The payload is small to keep
// simulations fast; Link has its own configured length on the wire.
type Packet struct {
	Sack    bool
	AR      bool
	PSN     wire.PSN
	Ack     wire.PSN
	Credits uint32
	Runs    []wire.SackRun
	Payload []byte
	Sum     uint32 // of the rest, as UDP's checksum
}

// checksum covers everything that corruption may change.
func (p *Packet) checksum() uint32 {
	var head [16]byte
	binary.BigEndian.PutUint32(head[0:], uint32(p.PSN))
	binary.BigEndian.PutUint32(head[4:], uint32(p.Ack))
	binary.BigEndian.PutUint32(head[8:], p.Credits)
	if p.AR {
		head[12] = 1
	}
	if p.Sack {
		head[13] = 1
	}
	sum := crc32.ChecksumIEEE(head[:])
	for _, r := range p.Runs {
		binary.BigEndian.PutUint32(head[0:], uint32(r.First))
		binary.BigEndian.PutUint32(head[4:], uint32(r.End))
		sum = crc32.Update(sum, crc32.IEEETable, head[:8])
	}
	return crc32.Update(sum, crc32.IEEETable, p.Payload)
}

// String shows the packet in one line for transcripts.
func (p *Packet) String() string {
	var b strings.Builder
	switch {
	case p.Sack:
		b.WriteString("sack")
	case len(p.Payload) > 0:
		fmt.Fprintf(&b, "data %d", uint32(p.PSN))
	default:
		b.WriteString("pure")
	}
	fmt.Fprintf(&b, " ack=%d credits=%d", uint32(p.Ack), p.Credits)
	for _, r := range p.Runs {
		fmt.Fprintf(&b, " [%d,%d)", uint32(r.First), uint32(r.End))
	}
	if p.AR {
		b.WriteString(" AR")
	}
	return b.String()
}

// copyFrom makes p a deep copy of q, reusing p's memory.
func (p *Packet) copyFrom(q *Packet) {
	runs, payload := p.Runs[:0], p.Payload[:0]
	*p = *q
	p.Runs = append(runs, q.Runs...)
	p.Payload = append(payload, q.Payload...)
}

// mix is a 64-bit finalizer: neighbouring inputs give unrelated outputs.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// tokenOf returns the token under which the peer with that key sends psn.
func tokenOf(key uint64, psn wire.PSN) uint64 {
	return mix(key + uint64(psn)*0x9e3779b97f4a7c15)
}

// appendContent appends the segment for psn and token.
func appendContent(dst []byte, psn wire.PSN, token uint64) []byte {
	n := 8 + int(token%25)
	x := token ^ uint64(psn)<<32
	for len(dst) < n {
		x = mix(x + 0x9e3779b97f4a7c15)
		dst = binary.BigEndian.AppendUint64(dst, x)
	}
	return dst[:n]
}
