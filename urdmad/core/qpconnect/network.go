package qpconnect

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/handshake"
)

// Network carries out the manager's effects; cm.Network describes the methods that both have.
type Network interface {
	Now() clock.Time
	Set(t *clock.Timer, at clock.Time)
	NextHop(dev int, dst netip.Addr) (hop netip.Addr, ok bool)
	Resolve(dev int, hop, dst netip.Addr, done func(l cm.Link, ok bool))
	// Random returns a random cookie.
	Random() uint32

	// Await is called when the pair's queue pair has no connection. When the queue pair has something to
	// send, the network calls Manager.Waiting; when it fails or is destroyed, Manager.Stop.
	Await(p *Pair)
	// Open reserves a UDP port number of the pair's device for a connection.
	Open(p *Pair) (Conn, error)
	// Join connects two queue pairs of this urdmad, or one with itself, and opens the connection for data.
	Join(a, b *Pair)
}

// Conn is our end of a connection in the network. The network calls Manager.Established and Manager.Closed
// with its pair.
type Conn interface {
	Port() uint16
	Number() uint32 // Number of our messages
	Cookie() uint32 // to be put into our messages, except challenges
	// Send sends a message. It adds our offer for queue pair qp.
	Send(p *cm.Message, qp cm.QueuePair)
	// Start opens the connection for data, with what the peer's message has.
	Start(s cm.Start, peer *handshake.ByNumber)
	// Abort ends a connection that was started, as if by the peer's fin;
	// Closed follows.
	Abort()
	// Release gives up a connection that was never started.
	Release()
}

// QueuePair is a queue pair to connect.
type QueuePair interface {
	cm.QueuePair
	// Patience is how long posted work waits for a connection.
	Patience() clock.Time
	// SendsBegun reports whether sends have begun, which can't continue on another connection.
	SendsBegun() bool
	// Exhaust fails posted work, because the peer did not answer.
	Exhaust()
}
