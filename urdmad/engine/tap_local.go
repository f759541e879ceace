package engine

import (
	"urdma/urdmad/netif"
	"urdma/urdmad/qp"
	"urdma/urdmad/rdmap"
	"urdma/urdmad/samehost"
	"urdma/urdmad/trp"
	"urdma/wire"
)

// This file makes up the frames that a wire would carry for a connection within
// this engine (package samehost), for taps: handshake, every message's segments,
// the Terminate and the fins. There is no loss, so there are no
// acknowledgements; each frame acknowledges all that the other side sent.
// Sequence numbers begin at 0 and cookies are 0.

// madeUp is what has been shown of same-host connections.
type madeUp struct {
	ends  map[*samehost.Conn]*shown
	frame []byte // room for one frame
}

// shown is what one end has shown of itself.
type shown struct {
	next  wire.PSN // of this side
	heard wire.PSN // the other side's next
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

// room is room for one frame of an interface.
func (m *madeUp) room(n *netif.Interface) []byte {
	if size := wire.EthernetLen + n.MTU(); len(m.frame) < size {
		m.frame = make([]byte, size)
	}
	return m.frame
}

// ShowHandshake shows a control packet between two ids of this engine; q, if
// there is one, is what its sender wants to connect.
func (e *Engine) ShowHandshake(p *trp.ControlPacket, q *qp.QP) {
	n := e.Interface(p.Dev)
	if q != nil {
		p.Connect.HasExt, p.Connect.Ext = true, e.TRP.Offer(p.Dev, q)
	}
	frame := e.taps.madeUp.room(n)
	path := n.Path(n.MAC(), p.Local, p.Peer)
	size, err := p.Put(path.Payload(frame))
	if err != nil {
		return // nor would it have been sent
	}
	e.taps.show(Sight{Dev: p.Dev, Local: true, Frame: frame[:path.Put(frame, size)], Our: p.Local, Peer: p.Peer})
}

// Request is samehost.Observer's.
func (v *taps) Request(c *samehost.Conn) {
	s, sq := v.segmenter(c), &c.QP.SQ
	wr := sq.At(sq.Next())
	limit := s.Payload(wr)
	for off := uint32(0); ; off += limit {
		v.showSegment(c, wire.OpData, func(b []byte) int {
			n, _ := s.BuildRequest(b, sq.Next(), off)
			return n
		})
		if wr.Length-off <= limit {
			return
		}
	}
}

// Response is samehost.Observer's.
func (v *taps) Response(c *samehost.Conn, src []byte) {
	from := c.Other()
	s := v.segmenter(from)
	limit := s.TaggedPayload()
	for off := 0; ; off += limit {
		v.showSegment(from, wire.OpData, func(b []byte) int {
			return s.BuildResponse(b, c.QP, c.QP.SQ.Next(), src, uint32(off))
		})
		if len(src)-off <= limit {
			return
		}
	}
}

// Refusal is samehost.Observer's: the first segment of what was refused, and the
// Terminate.
func (v *taps) Refusal(c *samehost.Conn, code rdmap.Code) {
	s := v.segmenter(c)
	var refused []byte
	v.showSegment(c, wire.OpData, func(b []byte) int {
		n, _ := s.BuildRequest(b, c.QP.SQ.Next(), 0)
		refused = append(refused, b[:n]...)
		return n
	})
	if message := rdmap.RefusalOf(refused, code); message != nil {
		v.showSegment(c.Other(), wire.OpData, func(b []byte) int { return copy(b, message) })
	}
}

// End is samehost.Observer's.
func (v *taps) End(c *samehost.Conn) {
	v.showSegment(c, wire.OpFin, func([]byte) int { return 0 })
	delete(v.madeUp.ends, c)
}

func (v *taps) segmenter(c *samehost.Conn) rdmap.Segmenter {
	return rdmap.NewSegmenter(c.QP, v.e.ports[c.Dev].MaxSegment())
}

// showSegment shows a frame of c with the segment that build writes.
func (v *taps) showSegment(c *samehost.Conn, op wire.TRPOp, build func(b []byte) int) {
	n := v.e.Interface(c.Dev)
	frame := v.madeUp.room(n)
	path := n.Path(n.MAC(), c.Local, c.Peer)
	payload := path.Payload(frame)
	size := build(payload[wire.HeaderLen(true):])
	own := v.madeUp.of(c)
	t := wire.TRP{Op: op, PSN: own.next, Ack: own.heard, Credits: uint16(min(v.e.TRP.Window(), wire.MaxCredits))}
	if size > 0 {
		own.next = own.next.Add(1)
	}
	s := Sight{Dev: c.Dev, Local: true, Conn: &c.Connection, Our: c.Local, Peer: c.Peer}
	if other := c.Other(); other != nil {
		v.madeUp.of(other).heard = own.next
		s.Other = &other.Connection
	}
	size += t.Put(payload, true)
	s.Frame = frame[:path.Put(frame, size)]
	v.show(s)
}
