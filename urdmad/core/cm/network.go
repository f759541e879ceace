package cm

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/handshake"
)

// Network carries out the manager's effects. Devices are numbered as in Config.Addrs.
type Network interface {
	// Now is the time of the current turn.
	Now() clock.Time
	// Set sets a timer, see clock.Timers.
	Set(t *clock.Timer, at clock.Time)
	// Soon calls fn later in this turn, or in the next turn.
	Soon(fn func())

	// NextHop returns where device dev sends packets for dst: to dst itself if it is on the device's link,
	// or to a router; false if there is no route.
	NextHop(dev int, dst netip.Addr) (hop netip.Addr, ok bool)
	// Resolve finds the link from device dev to hop, a neighbour, and the MTU of the path through it to
	// dst. It calls done once, during the call or later; with false if there was no answer.
	Resolve(dev int, hop, dst netip.Addr, done func(l Link, ok bool))

	// Home returns the link from device dev to its own address, which also leads to other workers.
	Home(dev int) Link

	// Wire returns how a device's messages and connections travel.
	Wire(dev int) Wire
	// InUse reports whether a connection has a UDP port number of device dev, from Open until it is completely
	// closed.
	InUse(dev int, port uint16) bool
	// Join connects two ids of this urdmad; both ends must still be started.
	Join(a, b End) (Conn, Conn)
}

// Wire is one way in which messages and connections travel.
type Wire interface {
	// MaxPrivate returns how many bytes of private data a message can contain.
	MaxPrivate(k handshake.Kind) int
	// Size returns the length of the IP packet of a message, and of the packet that ends a connection which is
	// accepted and then given up.
	Size(p *Message) (packet, end int)
	// Send sends a message of no connection, which may be lost.
	Send(p *Message)

	// Listen makes connection requests for id's port number arrive at device dev, if that needs a socket,
	// as over TCP; EADDRINUSE if another program's socket has the number. Unlisten undoes one Listen.
	Listen(id *ID, dev int) error
	Unlisten(id *ID, dev int)

	// Open reserves UDP port number port of device dev for a connection of id with peer; EADDRINUSE if
	// another connection has it.
	Open(id *ID, dev int, port uint16, peer netip.AddrPort) (Conn, error)
}

// Link is the link-layer address of a neighbour, for example an Ethernet address. Only the network knows
// its content.
type Link any

// Conn is one side of a connection in the network. The network calls Manager.Established and Manager.Closed
// with its id.
type Conn interface {
	Owner() *ID
	Port() uint16 // our port number
	// Send sends a request, a reply or a reject, which may be lost. It adds what the connection's carrier offers.
	Send(p *Message)

	// Start opens the connection for data. The first packet of an active side acknowledges the accept.
	Start(s Start)
	// Disconnect ends the connection gracefully, and Closed follows; a connection that was never started is
	// given up.
	Disconnect()
	// Abort ends a connection whose peer never answered.
	Abort()
	// Release gives up a connection that was never started.
	Release()
}

// Arrived is a connection by which a request arrived: over TCP or RoCEv2 it exists before its id.
type Arrived interface {
	Conn
	// Adopt assigns the connection to the id created for the request, or ends the connection if the id's
	// owner may not have another socket.
	Adopt(id *ID) error
	// Withdrawn reports whether the peer has withdrawn the request.
	Withdrawn() bool
}

// Start has the parameters agreed on in a handshake.
type Start struct {
	QP       QueuePair
	IRD, ORD uint16 // in force: Reads that we accept at a time, Reads that we may have outstanding
	RNRRetry uint8  // rnr_retry_count of our side

	// Of our side, if AckTimeoutSet: how long a silent peer is tolerated, in the form of the attributes
	// timeout and retry_cnt of ibv_modify_qp(3).
	AckTimeoutSet          bool
	AckTimeout, RetryCount uint8

	// For a connection with another host.
	Link       Link
	PeerPort   uint16
	PeerNumber uint32 // Number of the peer's message
	Offer      any    // Offer of the peer's message
	// Passive: Established is called when the peer's first packet arrives.
	Passive bool
}

// End is an id's side of a connection within this urdmad.
type End struct {
	ID          *ID
	Dev         int
	Local, Peer netip.AddrPort
}

// QueuePair is the queue pair that an id connects.
type QueuePair interface {
	Number() uint32
	// Connectable reports whether a connection can be started on it.
	Connectable() bool
	// Gone reports whether its client has destroyed it.
	Gone() bool
}

// Message is a message that connects ids.
type Message = handshake.Message
