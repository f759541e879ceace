package roce

import (
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rc"
	"urdma/wire/roce"
)

// answer is the memory that a Read is answered from, or an atomic's result.
type answer struct {
	source qp.Source
	atomic *original
}

type original struct {
	value uint64
	done  bool // the operation was executed
}

// sendAnswer sends the next packet that answers a Read or an atomic, if there is one.
func (c *Conn) sendAnswer(frame []byte) bool {
	p, ok := c.resp.NextAnswer()
	if !ok {
		return false
	}
	v, h := &c.answers[p.Slot], &c.head
	h.Opcode, h.PSN, h.AETH = c.transport|p.Opcode, p.PSN, roce.AETH{Syndrome: roce.NoCredits, MSN: p.MSN}
	h.AckReq, h.Solicited = false, false
	if p.Atomic {
		if !v.atomic.done {
			return false
		}
		h.Original = v.atomic.value
		c.send(frame, 0)
		c.resp.Answered(&p)
		return true
	}
	switch {
	case v.source.Revoked():
		c.resp.Refuse(p.PSN, roce.NAKAccess)
		c.refused()
		return false
	case !v.source.Available(p.Offset):
		return false
	}
	b := c.path.Payload(frame)
	n := 0
	if p.Length > 0 {
		n = copy(b[h.Len():], v.source.Bytes(p.Offset)[:p.Length])
		c.s.table.Spend(n)
	}
	c.send(frame, n)
	c.sentAnswer(v, &p)
	return true
}

// sentAnswer releases the memory from which the packet was read: for a repeated request it is looked up
// again.
func (c *Conn) sentAnswer(v *answer, p *rc.Packet) {
	end := p.Offset + p.Length
	v.source.Sent(end, uint64(end))
	v.source.Acked(uint64(end))
	c.resp.Answered(p)
	if p.Last {
		v.source.Release()
	}
}
