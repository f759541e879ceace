package datagram

import (
	"net/netip"

	"urdma/urdmad/clock"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// UC serves a queue pair of type UC: a qp.Carrier whose peer is the queue pair that
// its program has named. Messages are packets without acknowledgement (docs/WIRE.md
// chapter 13): a send completes when it has left, and a message of which a packet
// is missing arrives not at all.
type UC struct {
	qp.Connection

	s       *Stack
	port    *Port
	peer    wire.IPv4
	peerQPN wire.QPN
	psn     wire.PSN // of the next packet to the wire
	sent    uint64   // packets, or messages within this urdmad: the Mark of the last
	timer   *clock.Timer
	until   clock.Time // while it waits for a receive within this urdmad; else 0
	starved bool       // as Pair's
	in      arriving
}

// ModifyUC changes a queue pair of type UC as ibv_modify_qp(3) asks; peer is the
// address that its path leads to, if the mask has one. From RTR on messages arrive.
func (s *Stack) ModifyUC(q *qp.QP, dev int, mask uint32, a *abi.QPAttr, peer netip.Addr) error {
	if err := q.Modify(mask, a); err != nil {
		return err
	}
	switch c, _ := q.Carrier().(*UC); {
	case c != nil && mask&abi.QPMaskAV != 0:
		c.peer = peer.As4()
	case c != nil && mask&abi.QPMaskState != 0 && a.QPState == abi.QPSRTS:
		c.psn = wire.PSN(q.Attr.SQPSN)
	case c == nil && qp.Receives(q.State()):
		s.serveUC(q, dev, peer)
	}
	return nil
}

func (s *Stack) serveUC(q *qp.QP, dev int, peer netip.Addr) {
	c := &UC{s: s, port: s.ports[dev], peer: peer.As4(), peerQPN: wire.QPN(q.Attr.DestQPNum)}
	c.timer = clock.NewTimer(c.resume)
	c.in.next = wire.PSN(q.Attr.RQPSN)
	c.QP, c.Dev, c.ByNumber, c.Takes = q, dev, true, qp.ImmediateData
	c.Local = netip.AddrPortFrom(c.port.If.IP(), wire.DatagramPort)
	c.Peer = netip.AddrPortFrom(peer, wire.DatagramPort)
	s.ucs[wire.QPN(q.QPN)] = c
	s.table.Serve(q, c)
}

// live reports whether messages come and go.
func (c *UC) live() bool { return c.QP != nil && c.QP.State() != abi.QPSErr }

// Failed is qp.Carrier's: as with datagrams, an error of a send stops the sends.
func (c *UC) Failed() {
	if c.live() {
		c.QP.StopSends()
		return
	}
	c.withdraw()
}

func (c *UC) withdraw() {
	delete(c.s.ucs, wire.QPN(c.QP.QPN))
	c.s.clock.Set(c.timer, clock.Never)
	c.until = 0
}

// Detach is qp.Carrier's.
func (c *UC) Detach() {
	if c.QP == nil {
		return
	}
	c.withdraw()
	c.QP.Detach()
	c.QP = nil
}

// Faulted is qp.Carrier's: Failed follows.
func (c *UC) Faulted() {}

// Serving is qp.Carrier's: there are no Reads.
func (c *UC) Serving() int { return 0 }

// resume is the timer of a sender that waits.
func (c *UC) resume() {
	if c.live() {
		c.s.table.Ready(c.QP)
	}
}

// later has the queue pair tried again soon.
func (c *UC) later() { c.s.clock.Set(c.timer, c.s.clock.Now+lookAgain) }
