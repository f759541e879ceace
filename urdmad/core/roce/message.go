package roce

import (
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rc"
	"urdma/verbs/abi"
	"urdma/wire"
	"urdma/wire/roce"
)

// sendRequest sends the next packet of our messages if the window allows it.
func (c *Conn) sendRequest(frame []byte) bool {
	q, now := c.QP, c.now()
	ready := q.Ready()
	if !c.live() {
		return false // completing earlier work has ended the connection
	}
	if !c.req.Waiting() {
		if !ready {
			return false
		}
		c.beginMessage()
	}
	p, ok := c.req.Next(now)
	if !ok || p.Kind == rc.Data && !p.Again && !ready {
		return false
	}
	wr := q.SQ.At(p.Token)
	c.describe(&p, wr)
	n := 0
	if p.Kind == rc.Data && p.Length > 0 {
		n = int(p.Length)
		if at := c.head.Len(); !q.Gather(c.path.Payload(frame)[at:at+n], wr, p.Offset) {
			q.FailRevoked(p.Token & uint32(q.SQ.Slots()-1))
			c.end(qp.CloseLocal)
			return false
		}
	}
	if p.Missed { // not after time-outs: a peer that is suspended for a while has lost nothing
		c.path.Again()
	}
	if p.Again {
		c.SentAgain(uint32(p.PSN))
	}
	c.send(frame, n)
	c.req.Sent(now, &p)
	if p.Kind == rc.Data && !p.Again {
		q.SQ.Sent(p.Length, p.End(), false)
	}
	return true
}

// beginMessage begins the message of the work request at Next.
func (c *Conn) beginMessage() {
	sq := &c.QP.SQ
	wr := sq.At(sq.Next())
	switch {
	case wr.Op.Atomic:
		sq.Sent(wr.Length, c.req.Begin(sq.Next(), rc.Atomic, wr.Length), false)
	case wr.IsRead():
		sq.Sent(wr.Length, c.req.Begin(sq.Next(), rc.Read, wr.Length), false)
	default:
		c.req.Begin(sq.Next(), rc.Data, wr.Length)
	}
}

// describe fills in the header of a packet of a work request's message.
func (c *Conn) describe(p *rc.Request, wr *qp.SendWR) {
	h := &c.head
	h.Opcode, h.PSN, h.AckReq = c.transport|opcodeOf(wr, p), p.PSN, p.AckReq
	h.Solicited = p.Last && wr.Op.TakesReceive && wr.Flags&abi.SendSolicited != 0
	h.Immediate, h.Dead, h.SRQ = wr.Immediate, wire.STag(wr.STag), uint32(wr.STag)
	h.VA, h.RKey, h.Length = wr.RemoteAddr(), wire.STag(wr.RKey), wr.Length
	switch p.Kind {
	case rc.Read:
		h.VA, h.Length, h.AckReq = h.VA+uint64(p.Offset), p.Length, true
	case rc.Atomic:
		op := wr.AtomicOp()
		h.Swap, h.Compare, h.AckReq = op.Data, op.Compare, true
	}
}

// opcodeOf returns the opcode of a packet.
func opcodeOf(wr *qp.SendWR, p *rc.Request) roce.Opcode {
	switch {
	case p.Kind == rc.Read:
		return roce.ReadRequest
	case p.Kind == rc.Atomic && wr.AtomicOp().Add:
		return roce.FetchAdd
	case p.Kind == rc.Atomic:
		return roce.CompareSwap
	}
	first := roce.SendFirst
	if wr.Op.RemoteAccess != 0 {
		first = roce.WriteFirst
	}
	switch {
	case wr.Op.Invalidates && p.Last && p.First:
		return roce.SendOnlyInvalidate
	case wr.Op.Invalidates && p.Last:
		return roce.SendLastInvalidate
	case p.Last && p.First:
		first += roce.SendOnly
	case p.Last:
		first += roce.SendLast
	case !p.First:
		return first + roce.SendMiddle
	default:
		return first
	}
	if wr.Op.Immediate {
		first++
	}
	return first
}
