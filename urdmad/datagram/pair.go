package datagram

import (
	"net/netip"

	"urdma/urdmad/clock"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Pair serves a queue pair of type UD: a qp.Carrier whose connection has no peer.
type Pair struct {
	qp.Connection

	s    *Stack
	port *Port
	psn  wire.PSN // of the next datagram to the wire
	sent uint64   // messages: the Mark of the last
	wait wait
	// starved: somebody here waited for a receive, and none was posted. Until one
	// is, nobody waits for it again.
	starved bool
}

// serve makes a queue pair in RTR or later reachable.
func (s *Stack) serve(q *qp.QP, dev int) {
	p := &Pair{s: s, port: s.ports[dev]}
	p.wait.timer = clock.NewTimer(p.resume)
	p.QP, p.Dev, p.ByNumber, p.Takes = q, dev, true, qp.ImmediateData
	p.Local = netip.AddrPortFrom(p.port.If.IP(), wire.DatagramPort)
	s.pairs[wire.QPN(q.QPN)] = p
	s.table.Serve(q, p)
}

// live reports whether messages come and go.
func (p *Pair) live() bool { return p.QP != nil && p.QP.State() != abi.QPSErr }

// Failed is qp.Carrier's. An error of a send alone stops the sends, and messages
// go on to arrive (InfiniBand vol. 1, 10.3.1.5).
func (p *Pair) Failed() {
	if p.live() {
		p.QP.StopSends()
		return
	}
	p.withdraw()
}

// withdraw ends arrivals.
func (p *Pair) withdraw() {
	delete(p.s.pairs, wire.QPN(p.QP.QPN))
	p.s.clock.Set(p.wait.timer, clock.Never)
	p.wait.until = 0
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

// Faulted is qp.Carrier's: Failed follows.
func (p *Pair) Faulted() {}

// Serving is qp.Carrier's: there are no Reads.
func (p *Pair) Serving() int { return 0 }
