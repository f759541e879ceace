package trp

import (
	"urdma/urdmad/netif"
	"urdma/urdmad/rdmap"
)

// This file is for connections between clients of two workers of this urdmad. Their packets meet
// in memory, so a long payload stays where it is (netif.Loan): the receiving worker copies it
// from one client's memory to the other's.

// lentSegment is the longest payload that is lent, in bytes. It is more than a packet's, which
// makes less work, and so short that the receiving worker gets to other packets meanwhile.
const lentSegment = 32 << 10

// lending is what a connection lends.
type lending struct {
	netif.Loan      // with the segment being built; no Memory: none
	inside     bool // the peer is another worker's
	vec        [][]byte
	touched    byte
}

// build builds the segment of a token in b. Its payload is lent if it is too long for that.
func (c *Conn) build(b []byte, token uint64) (n int, ok bool) {
	v := &c.loan
	if v.Loan = (netif.Loan{}); !v.inside {
		return c.stream.Build(b, token)
	}
	n, v.vec, ok = c.stream.Compose(b, v.vec[:0], token)
	for _, piece := range v.vec {
		if len(piece) > len(b)-n {
			v.Bytes = piece
			region, work, index := c.stream.Lender(token)
			if v.Memory = region; work != nil {
				v.Work, v.Index = work, index
			}
			break
		}
		n += copy(b[n:], piece)
	}
	clear(v.vec)
	return n, ok
}

// touch reads of each page of what is lent: the peer's worker may have dropped the packet for memory that
// is not there any more, and its client is to end here.
func (v *lending) touch() {
	const page = 4096
	for i := 0; i < len(v.Bytes); i += page {
		v.touched ^= v.Bytes[i]
	}
	if len(v.Bytes) > 0 {
		v.touched ^= v.Bytes[len(v.Bytes)-1]
	}
}

// lent has a segment's payload be what its packet lends.
func lent(seg *rdmap.Segment, l *netif.Loan) {
	if l != nil {
		seg.Loan, seg.Lent = l, l.Bytes
	}
}
