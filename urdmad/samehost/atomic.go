package samehost

import (
	"urdma/urdmad/qp"
	"urdma/urdmad/rdmap"
	"urdma/verbs/abi"
)

// atomic carries an atomic operation out, once: on the fallback path the work
// request waits here for what it finds.
func (c *Conn) atomic(wr *qp.SendWR, peer *qp.QP) outcome {
	f := wr.Found
	if f == nil {
		f = c.operate(wr, peer)
	}
	switch {
	case f == nil:
		return outcome{code: c.atomicCode(wr, peer)}
	case !f.Done:
		return outcome{}
	case !rdmap.TakeOriginal(c.QP, c.QP.SQ.Next(), f.Original):
		c.revoked(c.QP.SQ.Next())
		return outcome{}
	}
	if o := c.s.observer; o != nil {
		o.Request(c)
		o.Original(c, f.Original)
	}
	return outcome{moved: int(wr.Length), done: true}
}

// operate has the operation carried out; nil if it may not be.
func (c *Conn) operate(wr *qp.SendWR, peer *qp.QP) *qp.Found {
	if c.atomicCode(wr, peer) != 0 {
		return nil
	}
	f, q := &qp.Found{}, c.QP
	op := rdmap.AtomicOperation(wr)
	wr.Found = f
	f.Original, f.Done = c.s.table.Atomic(peer, c.s.table.Regions.Lookup(wr.RKey), wr.RemoteAddr, &op, func(original uint64) {
		f.Original, f.Done = original, true
		c.s.table.Wake(q)
	})
	return f
}

func (c *Conn) atomicCode(wr *qp.SendWR, peer *qp.QP) rdmap.Code {
	return rdmap.CheckAtomic(peer, c.s.table.Regions.Lookup(wr.RKey), wr.RemoteAddr)
}

// oldest is the operation of the oldest work request, or nil.
func (c *Conn) oldest() *abi.Operation {
	sq := &c.QP.SQ
	if sq.Head() == sq.Tail() {
		return nil
	}
	return sq.At(sq.Head()).Op
}
