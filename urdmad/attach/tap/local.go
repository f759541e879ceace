package tap

import (
	"net/netip"

	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
	"urdma/urdmad/core/samehost"
	"urdma/urdmad/core/trp"
	"urdma/wire"
)

// This file synthesizes the frames that a wire would carry for messages within this engine:
// datagrams, and for a connection of package samehost the handshake, the segments of every
// message, Terminate and fins. Nothing is lost, so there are no separate acknowledgements; each
// frame acknowledges everything that the other side has sent. Sequence numbers start at 0 and
// cookies are 0.

// madeUp is the state of the synthesized frames.
type madeUp struct {
	ends  map[*samehost.Conn]*shown
	frame []byte // buffer for one frame
}

// shown is the state of one end of a connection.
type shown struct {
	next  wire.PSN // next PSN of this side
	heard wire.PSN // next PSN of the other side

	atomics uint32 // number of answered atomics
	request uint32 // offset of the next segment of the current message
}

func (m *madeUp) of(c *samehost.Conn) *shown {
	if m.ends == nil {
		m.ends = map[*samehost.Conn]*shown{}
	}
	if m.ends[c] == nil {
		m.ends[c] = &shown{}
	}
	return m.ends[c]
}

// room returns a buffer for one frame with n bytes of UDP payload, of either family.
func (m *madeUp) room(n int) []byte {
	if size := wire.UDP6HeaderLen + n; len(m.frame) < size {
		m.frame = make([]byte, size)
	}
	return m.frame
}

// handshake is shown handshakes within the engine.
func (v *Tap) handshake(p *trp.ControlPacket, q *qp.QP) {
	n := v.e.Interface(p.Dev)
	if q != nil {
		p.Connect.HasExt, p.Connect.Ext = true, v.e.TRP.Offer(p.Dev, q)
	}
	frame := v.madeUp.room(n.MaxDatagram())
	path := n.FramePath(n.Link(), p.Local, p.Peer)
	size, err := p.Put(path.Payload(frame))
	if err != nil {
		return // such a packet would not have been sent either
	}
	v.show(Sight{Dev: p.Dev, Local: true, Frame: frame[:path.Put(frame, size)], Our: p.Local, Peer: p.Peer}, "")
}

// Request implements samehost.Observer. It shows the part of a message carried so far, so that a
// long message does not delay the turn.
func (v *Tap) Request(c *samehost.Conn, i uint32) {
	s, sq, own := v.segmenter(c), &c.QP.SQ, v.madeUp.of(c)
	wr := sq.At(i)
	limit := s.Payload(wr)
	for off := own.request; ; {
		n := wr.Run(off, limit)
		if !wr.IsRead() && off+n > wr.Offset() {
			own.request = off
			return
		}
		v.showSegment(c, wire.OpData, func(b []byte) int {
			n, _ := s.BuildRequest(b, rdmap.Token(sq, i, off))
			return n
		})
		if off += n; off == wr.Length {
			own.request = 0
			return
		}
	}
}

// Immediate implements samehost.Observer.
func (v *Tap) Immediate(c *samehost.Conn, i uint32) {
	s, sq := v.segmenter(c), &c.QP.SQ
	v.showSegment(c, wire.OpData, func(b []byte) int {
		n, _ := s.BuildRequest(b, rdmap.ImmediateToken(sq, i))
		return n
	})
}

// Original implements samehost.Observer.
func (v *Tap) Original(c *samehost.Conn, i uint32, value uint64) {
	from := c.Other()
	own := v.madeUp.of(from)
	own.atomics++
	v.showSegment(from, wire.OpData, func(b []byte) int {
		return rdmap.BuildAtomicResponse(b, c.QP, i, own.atomics, value)
	})
}

// Response implements samehost.Observer. A segment ends at the end of the bytes carried in a
// turn.
func (v *Tap) Response(c *samehost.Conn, i uint32, src []byte) {
	from := c.Other()
	s, sq := v.segmenter(from), &c.QP.SQ
	off := sq.At(i).Got() - uint32(len(src))
	for first := true; first || len(src) > 0; first = false {
		n := min(len(src), s.TaggedPayload())
		v.showSegment(from, wire.OpData, func(b []byte) int {
			return rdmap.BuildResponse(b, c.QP, i, off, src[:n])
		})
		off, src = off+uint32(n), src[n:]
	}
}

// Refusal implements samehost.Observer. It shows the first segment of the refused message, or the
// immediate data that found no receive, and the Terminate.
func (v *Tap) Refusal(c *samehost.Conn, i uint32, code rdmap.Code) {
	s, sq := v.segmenter(c), &c.QP.SQ
	wr := sq.At(i)
	token := rdmap.Token(sq, i, 0)
	if wr.ImmediateNext() {
		token = rdmap.ImmediateToken(sq, i)
	}
	refused := make([]byte, v.e.TRP.Port(c.Dev).MaxSegment())
	n, _ := s.BuildRequest(refused, token)
	refused = refused[:n]
	if wr.Offset() == 0 || wr.ImmediateNext() { // else it was shown already
		v.showSegment(c, wire.OpData, func(b []byte) int { return copy(b, refused) })
	}
	if message := rdmap.RefusalOf(refused, code); message != nil {
		v.showSegment(c.Other(), wire.OpData, func(b []byte) int { return copy(b, message) })
	}
}

// End implements samehost.Observer.
func (v *Tap) End(c *samehost.Conn) {
	v.showSegment(c, wire.OpFin, func([]byte) int { return 0 })
	delete(v.madeUp.ends, c)
}

func (v *Tap) segmenter(c *samehost.Conn) rdmap.Segmenter {
	port := v.e.TRP.Port(c.Dev)
	return rdmap.NewSegmenter(c.QP, port.MaxSegment(), port.WholeLines())
}

// showSegment shows a frame of c with the segment that build writes.
func (v *Tap) showSegment(c *samehost.Conn, op wire.TRPOp, build func(b []byte) int) {
	n := v.e.Interface(c.Dev)
	frame := v.madeUp.room(n.MaxDatagram())
	path := n.FramePath(n.Link(), c.Local, c.Peer)
	payload := path.Payload(frame)
	size := build(payload[wire.TRPExtLen:])
	own := v.madeUp.of(c)
	t := wire.TRP{Op: op, PSN: own.next, Ack: own.heard, Credits: uint32(min(v.e.TRP.Window(), wire.MaxCredits))}
	if size > 0 {
		own.next = own.next.Add(1)
	}
	s := Sight{Dev: c.Dev, Local: true, Conn: &c.Connection, Our: c.Local, Peer: c.Peer}
	if other := c.Other(); other != nil {
		v.madeUp.of(other).heard = own.next
		s.Other = &other.Connection
	}
	size += t.Put(payload)
	s.Frame = frame[:path.Put(frame, size)]
	v.show(s, "")
}

// Packet implements datagram.Observer.
func (v *Tap) Packet(from, to *qp.Connection, dst netip.Addr, note string, build func(b []byte) int) {
	n := v.e.Interface(from.Dev)
	frame := v.madeUp.room(n.MaxDatagram())
	s := Sight{Dev: from.Dev, Local: true, Conn: from, Other: to, Our: from.Local,
		Peer: netip.AddrPortFrom(dst, wire.DatagramPort)}
	path := n.FramePath(n.Link(), s.Our, s.Peer)
	if size := build(path.Payload(frame)); size > 0 {
		s.Frame = frame[:path.Put(frame, size)]
		v.show(s, note)
	}
}
