package datagram

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// UC serves a queue pair of type UC: a qp.Carrier whose peer is the queue pair that its program named.
// Messages are packets without acknowledgement (docs/WIRE.md chapter 13): a send completes when it has
// left, and a message with a missing packet is dropped by its receiver.
type UC struct {
	sender

	peerQPN wire.QPN
	in      arriving
}

// ModifyUC changes a queue pair of type UC as ibv_modify_qp(3) requests; peer is the address of its path,
// if the mask has one. From RTR on it receives messages.
func (s *Stack) ModifyUC(q *qp.QP, dev int, mask uint32, a *abi.QPAttr, peer netip.Addr) error {
	if err := q.Modify(mask, a); err != nil {
		return err
	}
	switch c, _ := q.Carrier().(*UC); {
	case c != nil && mask&abi.QPMaskAV != 0:
		c.Peer = netip.AddrPortFrom(peer, s.form.Port())
	case c != nil && mask&abi.QPMaskState != 0 && a.QPState == abi.QPSRTS:
		c.psn = wire.PSN(q.Attr.SQPSN)
	case q.Carrier() == nil && qp.Receives(q.State()):
		s.serveUC(q, dev, peer)
	}
	return nil
}

func (s *Stack) serveUC(q *qp.QP, dev int, peer netip.Addr) {
	c := &UC{sender: s.newSender(dev), peerQPN: wire.QPN(q.Attr.DestQPNum)}
	c.wait.timer = clock.NewTimer(c.resume)
	c.in.next = wire.PSN(q.Attr.RQPSN)
	c.QP, c.Dev, c.ByNumber, c.PeerAccepts = q, dev, true, qp.ImmediateData
	c.Local = netip.AddrPortFrom(c.port.If.IP(), s.form.Port())
	c.Peer = netip.AddrPortFrom(peer, s.form.Port())
	s.ucs[wire.QPN(q.QPN)] = c
	s.table.Serve(q, c)
}

// PeerQPN returns the number of the peer's queue pair.
func (c *UC) PeerQPN() wire.QPN { return c.peerQPN }

// Flow returns the format's state for the queue pair.
func (c *UC) Flow() Flow { return c.flow }

// Failed implements qp.Carrier: as with type UD, an error of a send stops sending.
func (c *UC) Failed() {
	if c.live() {
		c.QP.StopSends()
		return
	}
	c.withdraw()
}

func (c *UC) withdraw() {
	delete(c.s.ucs, wire.QPN(c.QP.QPN))
	c.stop()
}

// Detach implements qp.Carrier.
func (c *UC) Detach() {
	if c.QP == nil {
		return
	}
	c.withdraw()
	c.QP.Detach()
	c.QP = nil
}
