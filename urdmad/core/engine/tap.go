package engine

import (
	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/mpa"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/samehost"
	"urdma/urdmad/core/trp"
)

// Tap is shown the frames that the engine's ports receive and send, and the messages of
// connections within the engine and over TCP; on the worker's thread.
type Tap interface {
	netif.Tap
	samehost.Observer
	datagram.Observer
	mpa.Observer
	// Handshake shows a connection management packet between two ids of this engine; q is the
	// queue pair that its sender wants to connect, or nil.
	Handshake(p *trp.ControlPacket, q *qp.QP)
}

// Tap returns the Tap set by SetTap, or nil.
func (e *Engine) Tap() Tap { return e.tap }

// SetTap shows everything to t from now on; nil ends that. It must be called on the worker's
// thread, between frames.
func (e *Engine) SetTap(t Tap) {
	e.tap = t
	for _, p := range e.ports {
		p.If.SetTap(t)
	}
	e.SameHost.SetObserver(t)
	e.Datagrams.SetObserver(t)
	e.MPA.SetObserver(t)
}
