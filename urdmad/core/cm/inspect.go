package cm

import (
	"net/netip"
)

// Side is the side of a connection that an id is.
type Side uint8

// Sides of an id.
const (
	SideNone Side = iota
	SideActive
	SidePassive
)

// View is an id as shown by inspection.
type View struct {
	State            string
	Listening        bool
	Side             Side
	Dev              int            // -1: any
	Local, Peer      netip.AddrPort // invalid: none
	Backlog, Pending int            // of a listener
	Tries            int            // repetitions of the handshake's last message
	QP               QueuePair
	Conn             Conn
}

// StateNames are the names of an id's states; package inspect has the same list for its readers.
var StateNames = [...]string{idle: "idle", bound: "bound", resolving: "resolving", resolved: "resolved",
	routed:    "routed",
	listening: "listening", connecting: "connecting", requested: "requested", accepting: "accepting",
	connected: "connected", ended: "ended"}

// View returns what inspection shows; call it on the worker's thread. QP is nil if the client has destroyed
// it, Conn if there is none.
func (id *ID) View() View {
	v := View{State: StateNames[id.state], Listening: id.state == listening, Dev: id.dev, Local: id.local, Peer: id.peer,
		Backlog: id.queue.backlog, Pending: id.queue.pending, Tries: id.tries, Conn: id.conn}
	switch {
	case id.parent != nil:
		v.Side = SidePassive
	case id.peer.IsValid():
		v.Side = SideActive
	}
	if qp := id.terms.QP; qp != nil && !qp.Gone() {
		v.QP = qp
	}
	return v
}

// ListenerAt returns the id that listens for connections at one of our addresses and a port number, or nil; call it
// on the worker's thread.
func (m *Manager) ListenerAt(a netip.AddrPort) *ID { return m.listener(a, false) }
