package qpconnect

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/handshake"
)

// Pauses before a packet is repeated.
const (
	firstRetry = 50 * clock.Millisecond // doubles each time
	maxRetry   = 8 * clock.Second
)

func retryAfter(tries int) clock.Time { return min(firstRetry<<min(tries, 10), maxRetry) }

// begin begins an attempt to connect. It sends a packet later in this turn or in the next: a connection
// that has just ended must send its fin first.
func (m *Manager) begin(v *Pair) {
	v.conn, v.heard, v.challenge, v.tries = nil, 0, 0, 0
	v.attempt++
	v.state = Resolving
	if v.sameHost {
		v.state = Waiting
	}
	m.net.Await(v)
	m.net.Set(v.timer, m.net.Now())
}

// tick is the timer function of a pair.
func (m *Manager) tick(v *Pair) {
	switch v.state {
	case Resolving:
		m.resolve(v)
	case Waiting:
		m.joinLocal(v)
	case Connecting:
		v.tries++
		m.ask(v)
	case Accepting:
		m.retryAccept(v)
	}
}

// joinLocal connects a queue pair with its peer in this urdmad, if the peer waits for it.
func (m *Manager) joinLocal(v *Pair) {
	o := m.pairs[v.Peer.QPN]
	if v.state != Waiting || o == nil || o.state != Waiting || o.Local != v.Peer || o.Peer != v.Local {
		return
	}
	for _, p := range []*Pair{v, o} {
		m.connected(p)
	}
	m.net.Join(v, o)
}

func (m *Manager) resolve(v *Pair) {
	hop, ok := m.net.NextHop(v.Dev, v.Peer.Addr)
	attempt := v.attempt
	m.net.Set(v.timer, m.net.Now()+retryAfter(v.tries))
	v.tries++
	if !ok {
		return
	}
	m.net.Resolve(v.Dev, hop, v.Peer.Addr, func(l cm.Link, ok bool) {
		if ok && v.attempt == attempt && v.state == Resolving {
			v.link = l
			m.open(v)
		}
	})
}

// open creates our end of a connection and sends a request.
func (m *Manager) open(v *Pair) {
	c, err := m.net.Open(v)
	if err != nil {
		m.log.Warn("no connection by queue pair number", "qpn", v.Local.QPN, "error", err)
		return
	}
	v.conn, v.state, v.tries = c, Connecting, 0
	m.ask(v)
}

// ask sends our request, and sets the timer for the next.
func (m *Manager) ask(v *Pair) {
	m.sendRequest(v, v.link, v.conn.Cookie(), v.heard)
	m.net.Set(v.timer, m.net.Now()+retryAfter(v.tries))
}

func (m *Manager) sendRequest(v *Pair, by cm.Link, cookie, echo uint32) {
	v.send(&cm.Message{Kind: handshake.Request, Link: by, Peer: netip.AddrPortFrom(v.Peer.Addr, UDPPort)}, cookie, echo)
}

func (v *Pair) send(p *cm.Message, cookie, echo uint32) {
	p.Dev, p.Local, p.IRD = v.Dev, netip.AddrPortFrom(v.Local.Addr, v.conn.Port()), v.IRD
	p.ByNumber = handshake.ByNumber{Target: v.Peer.QPN, Cookie: cookie, Echo: echo, MinRNRTimer: v.MinRNRTimer,
		PathMTU: v.PathMTU, RQPSN: v.RQPSN}
	v.conn.Send(p, v.QP)
}

// Waiting records that the queue pair has something to send and no connection. The first call restarts the
// handshake and the timer of the queue pair's patience.
func (m *Manager) Waiting(v *Pair) {
	if v.waits || v.state == Stopped || v.state == Connected {
		return
	}
	v.waits = true
	m.net.Set(v.patience, m.net.Now()+v.QP.Patience())
	if v.state == Connecting && v.tries > 0 {
		v.tries = 0
		m.ask(v)
	}
}

// satisfied stops that timer: there is a connection.
func (m *Manager) satisfied(v *Pair) {
	v.waits = false
	m.net.Set(v.patience, clock.Never)
}
