package cm

import (
	"net/netip"
	"syscall"
)

// EventKind is enum rdma_cm_event_type of rdma_cma.h.
type EventKind uint32

// Events that occur, numbered as in rdma_cma.h.
const (
	EventAddrResolved   EventKind = 0
	EventAddrError      EventKind = 1
	EventRouteResolved  EventKind = 2
	EventConnectRequest EventKind = 4
	EventConnectError   EventKind = 6
	EventUnreachable    EventKind = 7
	EventRejected       EventKind = 8
	EventEstablished    EventKind = 9
	EventDisconnected   EventKind = 10
	EventTimewaitExit   EventKind = 15
)

var eventNames = map[EventKind]string{
	EventAddrResolved: "ADDR_RESOLVED", EventAddrError: "ADDR_ERROR", EventRouteResolved: "ROUTE_RESOLVED",
	EventConnectRequest: "CONNECT_REQUEST", EventConnectError: "CONNECT_ERROR", EventUnreachable: "UNREACHABLE",
	EventRejected: "REJECTED", EventEstablished: "ESTABLISHED", EventDisconnected: "DISCONNECTED",
	EventTimewaitExit: "TIMEWAIT_EXIT",
}

func (k EventKind) String() string { return eventNames[k] }

// Event is an rdma_cm event.
type Event struct {
	Kind        EventKind
	ID          *ID           // the id of the event; for a request the listener
	Child       *ID           // the new id of a request
	Err         syscall.Errno // 0: none
	Reason      uint16        // of a refusal, see handshake.Message
	Dev         int           // -1: any
	Local, Peer netip.AddrPort
	Param       Param
}

// Param has the values of struct rdma_conn_param that the two sides exchange. Private data in an event
// belong to the manager: a receiver must copy them to keep them.
type Param struct {
	ResponderResources uint8 // Reads accepted at a time
	InitiatorDepth     uint8 // outstanding Reads
	RNRRetryCount      uint8
	RetryCount         uint8
	QPN                uint32 // in events the peer's; for an id with datagrams also our own
	QKey               uint32 // as QPN; only with datagrams
	PrivateData        []byte
}

// Channel is an rdma_cm event channel. Channels are compared by ==.
type Channel interface {
	// Deliver delivers an event to the channel's client. The channel doesn't keep e.
	Deliver(e *Event)
}

// Owner owns ids that it did not create: the passive side of a connection request belongs to the client
// that listens.
type Owner interface {
	// Adopt takes a new id, or refuses it.
	Adopt(id *ID) bool
}

// deliver fills in the id that an event is about, and delivers the event on id's channel.
func (m *Manager) deliver(id *ID, e Event) {
	if id.destroyed || id.Channel == nil || m.silent {
		return
	}
	about := id
	if e.Child != nil {
		about = e.Child
	}
	e.ID, e.Dev, e.Local, e.Peer = id, about.dev, about.local, about.peer
	id.Channel.Deliver(&e)
}

// Silence stops all events. urdmad calls it before it closes all client sessions, one after the other,
// because the other clients must not take the first ends for peers that disconnected gracefully.
func (m *Manager) Silence() { m.silent = true }
