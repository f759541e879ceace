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
	ID          *ID           // whose event it is; a listener's for a request
	Child       *ID           // of a request: the id that it made
	Err         syscall.Errno // 0: none
	Reason      uint16        // of a refusal, in InfiniBand's numbers: of a REJ, or the status of a SIDR_REP
	Dev         int           // -1: any
	Local, Peer netip.AddrPort
	Param       Param
}

// Reasons of Event for a request that was rejected (InfiniBand vol. 1). A reject has them in the
// place of IRD.
const (
	Unsupported    = 5
	InvalidService = 8 // nobody listens
	Stale          = 10
	ByConsumer     = 28 // the program refuses
)

// Param is what of struct rdma_conn_param the two sides tell each other.
// Private data in an event is the manager's: a receiver that keeps it copies it.
type Param struct {
	ResponderResources uint8 // Reads served at once
	InitiatorDepth     uint8 // Reads that may be open
	RNRRetryCount      uint8
	RetryCount         uint8
	QPN                uint32 // the peer's in events; of an id with datagrams also our own
	QKey               uint32 // likewise; with datagrams only
	PrivateData        []byte
}

// Channel is an rdma_cm event channel; ids are compared by it.
type Channel interface {
	// Deliver hands an event to the channel's client. The channel doesn't keep
	// e.
	Deliver(e *Event)
}

// Owner keeps the ids that appear by themselves: the passive side of a
// connection request belongs to the client that listens.
type Owner interface {
	// Adopt takes a new id, or refuses it.
	Adopt(id *ID) bool
}

// deliver fills in the id that an event is about and delivers it on id's channel.
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

// Silence stops all events: urdmad is about to hang up on every client, one
// after the other, and the first to go must not look to the others like a peer
// that disconnected in good order.
func (m *Manager) Silence() { m.silent = true }
