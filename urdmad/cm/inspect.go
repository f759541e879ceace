package cm

import (
	"urdma/urdmad/engine"
	"urdma/verbs/abi"
	"urdma/wire"
)

// Sides of an id.
const (
	SideNone = iota
	SideActive
	SidePassive
)

// View is an id as looking inside shows it.
type View struct {
	State            string
	Listening        bool
	Side             int
	Dev              int // -1: any
	Local, Peer      abi.Addr
	Created          engine.Time
	Backlog, Pending int // a listener's
	Tries            int // repetitions of the handshake's last message
	QP               *engine.QP
}

var stateNames = [...]string{idle: "idle", bound: "bound", resolving: "resolving", resolved: "resolved", routed: "routed",
	listening: "listening", connecting: "connecting", requested: "requested", accepting: "accepting",
	connected: "connected", ended: "ended"}

// View copies what is to be shown, on the worker's thread. QP is nil when the
// client has destroyed it.
func (id *ID) View() View {
	v := View{State: stateNames[id.state], Listening: id.state == listening, Dev: id.dev, Local: id.local.abi(),
		Peer: id.peer.abi(), Created: id.created, Backlog: id.backlog, Pending: id.pending, Tries: id.tries}
	switch {
	case id.parent != nil:
		v.Side = SidePassive
	case id.peer.ip != [4]byte{}:
		v.Side = SideActive
	}
	if id.qp != nil && !id.qp.Gone() {
		v.QP = id.qp
	}
	return v
}

// ListenerAt is the id that listens to requests for an address and port number
// of ours, or nil; on the worker's thread.
func (m *Manager) ListenerAt(ip wire.IPv4, port uint16) *ID { return m.listener(addr{ip, port}) }

// Names reports whether either end of an id is at a host and port number, of
// which a zero stands for any.
func (id *ID) Names(ip wire.IPv4, port uint16) bool {
	return id.local.is(ip, port) || id.peer.is(ip, port)
}

func (a addr) is(ip wire.IPv4, port uint16) bool {
	return (ip == wire.IPv4{} || a.ip == ip) && (port == 0 || a.port == port)
}
