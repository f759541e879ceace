package engine

import (
	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/mpa"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/qp"
	"urdma/urdmad/core/samehost"
	"urdma/urdmad/core/trp"
)

// Tap is shown what the engine's ports receive and send, and what connections within the
// engine and over TCP carry; on the worker's thread.
type Tap interface {
	netif.Tap
	samehost.Observer
	datagram.Observer
	mpa.Observer
	// Handshake shows a control packet between two ids of this engine; q, if there is one,
	// is what its sender wants to connect.
	Handshake(p *trp.ControlPacket, q *qp.QP)
}

// Tap is the one that SetTap has set, or nil.
func (e *Engine) Tap() Tap { return e.tap }

// SetTap shows t all of that from now on; nil: nobody looks. On the worker's thread, between
// frames.
func (e *Engine) SetTap(t Tap) {
	e.tap = t
	for _, p := range e.ports {
		p.If.SetTap(t)
	}
	e.SameHost.SetObserver(t)
	e.Datagrams.SetObserver(t)
	e.MPA.SetObserver(t)
}
