package qpconnect

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/wire"
)

// Network is what the manager makes happen outside; cm.Network says more about
// the calls that both have.
type Network interface {
	Now() clock.Time
	Set(t *clock.Timer, at clock.Time)
	NextHop(dev int, dst netip.Addr) (hop netip.Addr, ok bool)
	Resolve(dev int, hop, dst netip.Addr, done func(l cm.Link, ok bool))
	Send(p *cm.Packet)
	// Random draws a cookie.
	Random() uint32

	// Await: the pair's queue pair is without a connection from now on. When
	// it has something to send, the network calls Manager.Waiting; when it fails
	// or goes away, Manager.Stop.
	Await(p *Pair)
	// Open reserves a UDP port number of the pair's device for a connection.
	Open(p *Pair) (Conn, error)
	// Join connects two queue pairs of this urdmad, or one with itself, and lets
	// data flow.
	Join(a, b *Pair)
}

// Conn is our end of a connection that the network carries. The network calls
// Manager.Established and Manager.Closed with its pair.
type Conn interface {
	Port() uint16
	ISN() wire.PSN
	// Extension is what we offer the peer, but for what chapter 9 adds.
	Extension(qp cm.QueuePair) wire.TRPExtension
	// Start lets data flow.
	Start(s cm.Start)
	// Acknowledge sends an acknowledgement in this turn.
	Acknowledge()
	// Abort ends a connection that was started, as if by the peer's fin;
	// Closed follows.
	Abort()
	// Release gives up a connection that was never started.
	Release()
}

// QueuePair is what is connected.
type QueuePair interface {
	cm.QueuePair
	// Patience is how long posted work waits for a connection.
	Patience() clock.Time
	// Amidst reports whether sends have begun, which no other connection may
	// carry on.
	Amidst() bool
	// Exhaust fails posted work, as the peer did not answer.
	Exhaust()
}
