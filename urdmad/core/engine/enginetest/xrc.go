package enginetest

import (
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// NewNamed returns a shared receive queue of an XRC domain, for n receives, which complete on cq.
func (c *Client) NewNamed(d *qp.Domain, n uint32, cq *CQ) *SRQ {
	layout := ring.SRQLayout(n, 4)
	c.handles++
	s := &SRQ{Client: c, Mem: make([]byte, layout.Bytes)}
	s.Q = qp.NewShared(qp.Shared{Handle: c.handles, PD: c.PD, Async: c.Async.Engine,
		Named: qp.Named{Domain: d, CQ: cq.Q, Client: &c.E.Client}}, s.Mem, &layout)
	s.Ring.Init(s.Mem, &layout)
	c.Host.Do(func() { c.Host.Engine.QPs.AddQueue(s.Q) })
	cq.ofDomain = true
	return s
}

// Remove destroys a shared receive queue of an XRC domain.
func (s *SRQ) Remove() {
	h := s.Client.Host
	h.Do(func() { h.Engine.QPs.RemoveQueue(s.Q) })
}

// NewTarget returns a queue pair of type XRC_RECV, with one reference.
func (c *Client) NewTarget(d *qp.Domain) *QP {
	q := &QP{Client: c, Target: &qp.Target{Async: c.Async.Engine}}
	c.handles++
	q.Target.Handle = c.handles
	q.Q = qp.New(qp.Config{Type: abi.QPTypeXRCRecv, Client: &c.E.Client, Domain: d}, nil, &q.Layout)
	c.Host.Do(func() {
		c.Host.Engine.QPs.Add(q.Q)
		q.Q.References.Add(q.Target)
	})
	c.Host.World.T.Cleanup(q.Destroy)
	return q
}

// NewInitiator returns a queue pair of type XRC_SEND.
func (c *Client) NewInitiator() *QP {
	want := abi.QPCap{MaxSendWR: 64, MaxSendSGE: 4, MaxInline: 64}
	cq := c.NewCQ(72)
	return c.newQP(abi.QPTypeXRCSend, &want, cq, cq, nil)
}

// SendTo returns a signaled Send to a shared receive queue of the peer.
func SendTo(id uint64, s *SRQ) abi.SQE {
	w := Send(id)
	w.RemoteSRQN = s.Q.Shared().Number
	return w
}
