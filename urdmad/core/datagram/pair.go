package datagram

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/wire"
)

// Pair serves a queue pair of type UD: a qp.Carrier whose connection has no peer.
type Pair struct {
	sender
	unserved unserved
}

// serve makes a queue pair in RTR or later reachable.
func (s *Stack) serve(q *qp.QP, dev int) {
	p := &Pair{sender: s.newSender(dev)}
	p.wait.timer = clock.NewTimer(p.resume)
	p.QP, p.Dev, p.ByNumber, p.Takes = q, dev, true, qp.ImmediateData
	p.Local = netip.AddrPortFrom(p.port.If.IP(), s.form.Port())
	s.pairs[wire.QPN(q.QPN)] = p
	s.table.Serve(q, p)
}

// Failed is qp.Carrier's. An error of a send alone stops the sends, and messages
// go on to arrive (InfiniBand vol. 1).
func (p *Pair) Failed() {
	if p.live() {
		p.QP.StopSends()
		return
	}
	p.withdraw()
}

// Faulted is qp.Carrier's: only a message that is being copied has a receive.
func (p *Pair) Faulted() bool {
	active, _ := p.QP.Recv.Active()
	return active
}

// withdraw ends arrivals.
func (p *Pair) withdraw() {
	delete(p.s.pairs, wire.QPN(p.QP.QPN))
	p.stop()
}

// Detach is qp.Carrier's.
func (p *Pair) Detach() {
	if p.QP == nil {
		return
	}
	p.withdraw()
	p.QP.Detach()
	p.QP = nil
}
