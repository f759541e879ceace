package samehost

import (
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/rdmap"
)

// This file reads the peer's memory for Reads and executes atomic operations.

// answer is the state of the current Read or atomic operation until it is wholly answered.
type answer struct {
	owed   bool
	index  uint32    // of the work request
	source qp.Source // of a Read
	found  *found    // of an atomic operation
}

// found is the result of an atomic operation.
type found struct {
	done     bool
	original uint64
}

// asked records that the request of the work request at index i was passed to the peer.
func (c *Conn) asked(i uint32, a answer) {
	c.answer = a
	c.answer.owed, c.answer.index = true, i
	c.QP.SQ.Sent(0, c.mark(), false)
}

// answered ends that state.
func (c *Conn) answered() {
	c.answer.source.Release()
	c.answer = answer{}
}

func (c *Conn) read(i uint32, wr *qp.SendWR, peer *qp.QP) outcome {
	if !c.answer.owed {
		source, v := peer.BeginRead(wr.RKey, wr.RemoteAddr(), wr.Length, c.QP)
		if v.Is != qp.Done {
			return refusal(v, rdmap.ReadCode(v))
		}
		c.asked(i, answer{source: source})
	}
	s := &c.answer.source
	switch {
	case s.Revoked():
		v := qp.Verdict{Is: qp.Denied, Why: mem.NoRegion}
		return refusal(v, rdmap.ReadCode(v))
	case !s.Available(wr.Got()):
		return outcome{}
	}
	var src []byte
	if n := s.Run(wr.Got(), budget); n > 0 {
		src = s.Bytes(wr.Got())[:n]
	}
	if out := c.respond(i, c.QP.PlaceResponse(wr, src)); out.v.Is != qp.Done || !c.live() {
		return out
	}
	if wr.Got() < wr.Length {
		s.Sent(wr.Got(), 0)
		s.Acked(0)
		return outcome{moved: len(src)}
	}
	c.answered()
	return outcome{moved: len(src), done: true}
}

// atomic executes an atomic operation, once.
func (c *Conn) atomic(i uint32, wr *qp.SendWR, peer *qp.QP) outcome {
	if !c.answer.owed {
		f, q, op := &found{}, c.QP, wr.AtomicOp()
		original, done, v := peer.Atomic(wr.RKey, wr.RemoteAddr(), &op, func(original uint64) {
			f.original, f.done = original, true
			c.s.table.Wake(q)
		})
		if v.Is != qp.Done {
			return refusal(v, rdmap.ReadCode(v))
		}
		f.original, f.done = original, done
		c.asked(i, answer{found: f})
	}
	f := c.answer.found
	if !f.done {
		return outcome{}
	}
	if out := c.respond(i, c.QP.PlaceOriginal(wr, f.original)); out.v.Is != qp.Done || !c.live() {
		return out
	}
	c.answered()
	return outcome{moved: int(wr.Length), done: true}
}

// respond returns the outcome for a verdict about a piece of an answer.
func (c *Conn) respond(i uint32, v qp.Verdict) outcome {
	if v.Is == qp.Revoked {
		c.revoked(i)
	}
	return outcome{v: v}
}

// revoked fails the queue pair because memory of the work request at index i was deregistered.
func (c *Conn) revoked(i uint32) {
	c.completeDelayed()
	c.QP.FailRevoked(i)
	c.Failed()
}
