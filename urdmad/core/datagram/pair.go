package datagram

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// Pair serves a queue pair of type UD: a qp.Carrier without a peer.
type Pair struct {
	sender
	unserved unserved
}

// serve makes a queue pair in RTR or a later state reachable.
func (s *Stack) serve(q *qp.QP, dev int) {
	p := &Pair{sender: s.newSender(dev)}
	p.wait.timer = clock.NewTimer(p.resume)
	p.QP, p.Dev, p.ByNumber, p.PeerAccepts = q, dev, true, qp.ImmediateData
	p.Local = netip.AddrPortFrom(p.port.If.IP(), s.form.Port())
	s.pairs[wire.QPN(q.QPN)] = p
	s.table.Serve(q, p)
}

// Failed implements qp.Carrier. If only a send failed, sending stops, but messages still arrive (InfiniBand
// vol. 1).
func (p *Pair) Failed() {
	if p.live() {
		p.QP.StopSends()
		return
	}
	p.withdraw()
}

// Faulted implements qp.Carrier: a receive is in use only while a message is copied to it.
func (p *Pair) Faulted() bool {
	active, _ := p.QP.Recv.Active()
	return active
}

// withdraw stops the arrival of messages.
func (p *Pair) withdraw() {
	delete(p.s.pairs, wire.QPN(p.QP.QPN))
	p.stop()
}

// Detach implements qp.Carrier.
func (p *Pair) Detach() {
	if p.QP == nil {
		return
	}
	p.withdraw()
	p.QP.Detach()
	p.QP = nil
}
