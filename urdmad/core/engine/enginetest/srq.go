package enginetest

import (
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// SRQ is a shared receive queue of a client.
type SRQ struct {
	Client *Client
	Q      *qp.RecvQueue
	Ring   ring.ClientSRQ
	Mem    []byte // the ring's memory
}

// NewSRQ returns a shared receive queue for n receives, with an srq_limit.
func (c *Client) NewSRQ(n, limit uint32) *SRQ {
	layout := ring.SRQLayout(n, 4)
	c.handles++
	s := &SRQ{Client: c, Mem: make([]byte, layout.Bytes)}
	s.Q = qp.NewShared(qp.Shared{Handle: c.handles, PD: c.PD, Async: c.Async.Engine, Limit: limit}, s.Mem, &layout)
	s.Ring.Init(s.Mem, &layout)
	return s
}

// NewQP returns a queue pair that draws from the shared receive queue and completes to recv.
func (s *SRQ) NewQP(recv *CQ) *QP {
	want := abi.QPCap{MaxSendWR: 64, MaxSendSGE: 4, MaxInline: 64}
	return s.Client.newQP(abi.QPTypeRC, &want, s.Client.NewCQ(72), recv, s)
}

// Post posts one receive; it returns false if the queue is full.
func (s *SRQ) Post(id uint64, sge ...abi.SGE) bool {
	if !s.Ring.Write(id, sge) {
		return false
	}
	s.Ring.Publish()
	return true
}
