package cm

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/wire"
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

	// MaxPrivate returns how many bytes of private data a message of a device can contain.
	MaxPrivate(dev int, op wire.TRPOp) int
	// Send sends a packet, which may be lost.
	Send(p *Packet)

	// Listen makes connection requests for id's port number arrive at device dev, if that needs a socket,
	// as over TCP; EADDRINUSE if another program's socket has the number. Unlisten undoes one Listen.
	Listen(id *ID, dev int) error
	Unlisten(id *ID, dev int)

	// Open reserves UDP port number port of device dev for a connection of id with peer; EADDRINUSE if
	// another connection has it.
	Open(id *ID, dev int, port uint16, peer netip.AddrPort) (Conn, error)
	// Adopt assigns the connection of a request to the id created for it, or ends the connection if the
	// id's owner may not have another socket.
	Adopt(id *ID, c Conn) (Conn, error)
	// Withdrawn reports whether the peer has withdrawn the request of a connection.
	Withdrawn(c Conn) bool
	// ConnAt returns the connection that has a UDP port number of device dev, from Open until it is
	// completely closed, or nil.
	ConnAt(dev int, port uint16) Conn
	// Join connects two ids of this urdmad; both ends must still be started.
	Join(a, b End) (Conn, Conn)
}

// Link is the link-layer address of a neighbour, for example an Ethernet address. Only the network knows
// its content.
type Link any

// Conn is one side of a connection in the network. The network calls Manager.Established and Manager.Closed
// with its id.
type Conn interface {
	Owner() *ID
	Port() uint16         // our port number
	PeerAddr() netip.Addr // the peer's address, as given to Open
	ISN() wire.PSN        // the PSN of our first segment
	// Extension returns our offer to a peer for a connection of qp.
	Extension(qp QueuePair) wire.TRPExtension

	// Start opens the connection for data. The first packet of an active side acknowledges the accept.
	Start(s Start)
	// Acknowledge sends an acknowledgement in this turn.
	Acknowledge()
	// Disconnect ends the connection gracefully, and Closed follows; a connection that was never started is
	// given up.
	Disconnect()
	// Abort ends a connection whose peer never answered.
	Abort()
	// Release gives up a connection that was never started.
	Release()
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
	Link      Link
	PeerPort  uint16
	PeerISN   wire.PSN
	Extension wire.TRPExtension
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
	Number() wire.QPN
	// Connectable reports whether a connection can be started on it.
	Connectable() bool
	// Gone reports whether its client has destroyed it.
	Gone() bool
}

// Packet is a packet of the handshake: a request, accept or reject, or the fin of a connection that was
// never started on this side.
type Packet struct {
	Dev         int
	Link        Link // the neighbour from which it came or to which it goes
	Local, Peer netip.AddrPort
	TRP         wire.TRP
	Connect     wire.TRPConnect // unused in a fin
	// Conn is the connection on which a request or its answer arrived; nil if they are packets, which may
	// be lost, repeated or forged.
	Conn Conn
}
