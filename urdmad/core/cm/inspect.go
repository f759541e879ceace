package cm

import (
	"net/netip"
)

// Side says which side of a connection an id is.
type Side uint8

// Sides of an id.
const (
	SideNone Side = iota
	SideActive
	SidePassive
)

// View is an id as looking inside shows it.
type View struct {
	State            string
	Listening        bool
	Side             Side
	Dev              int            // -1: any
	Local, Peer      netip.AddrPort // not valid: none
	Backlog, Pending int            // a listener's
	Tries            int            // repetitions of the handshake's last message
	QP               QueuePair
	Conn             Conn
}

// StateNames are the states of an id by name; package inspect has the same list
// for its readers.
var StateNames = [...]string{idle: "idle", bound: "bound", resolving: "resolving", resolved: "resolved", routed: "routed",
	listening: "listening", connecting: "connecting", requested: "requested", accepting: "accepting",
	connected: "connected", ended: "ended"}

// View copies what is to be shown, on the worker's thread. QP is nil when the
// client has destroyed it, Conn when there is none.
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

// ListenerAt is the id that listens to requests for an address and port number
// of ours, or nil; on the worker's thread.
func (m *Manager) ListenerAt(a netip.AddrPort) *ID { return m.listener(a) }
