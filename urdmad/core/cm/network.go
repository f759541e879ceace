package cm

import (
	"net/netip"

	"urdma/urdmad/core/clock"
	"urdma/wire"
)

// Network is what the manager makes happen outside. Devices are numbered as in
// Config.Addrs.
type Network interface {
	// Now is the time of the current turn.
	Now() clock.Time
	// Set sets a timer, see clock.Timers.
	Set(t *clock.Timer, at clock.Time)
	// Soon calls fn later in this turn, or in the next.
	Soon(fn func())

	// NextHop is where device dev sends packets for dst: to dst itself, which is
	// on its link, or to a router; false if it has no route there.
	NextHop(dev int, dst netip.Addr) (hop netip.Addr, ok bool)
	// Resolve finds out how device dev reaches hop, a neighbour, and what the way
	// by it to dst takes, and calls done once, during the call or later; false if
	// nobody answered.
	Resolve(dev int, hop, dst netip.Addr, done func(l Link, ok bool))

	// Home is how device dev reaches its own address, which is another worker's way, too.
	Home(dev int) Link

	// MaxPrivate is how many bytes of private data a message of a device has room for.
	MaxPrivate(dev int, op wire.TRPOp) int
	// Send sends a packet, which may be lost.
	Send(p *Packet)
	// Show lets captures see a packet that two ids of this urdmad would exchange
	// on a wire. qp is what its sender wants to connect, or nil.
	Show(p *Packet, qp QueuePair)

	// Listen has connection requests for id's port number of device dev come in, where that
	// takes a socket, as over TCP; EADDRINUSE if another program's has it. Unlisten
	// undoes one Listen.
	Listen(id *ID, dev int) error
	Unlisten(id *ID, dev int)

	// Open reserves UDP port number port of device dev for a connection of id
	// with peer; EADDRINUSE if a connection has it.
	Open(id *ID, dev int, port uint16, peer netip.AddrPort) (Conn, error)
	// Adopt gives the connection by which a request came to the id that was made for it, or
	// ends it, if the id's owner can't have its socket.
	Adopt(id *ID, c Conn) (Conn, error)
	// Withdrawn reports whether the peer has given up the request that came by a connection.
	Withdrawn(c Conn) bool
	// ConnAt is the connection that has a UDP port number of device dev, from
	// Open until nothing of it is left, or nil.
	ConnAt(dev int, port uint16) Conn
	// Join makes one connection between two ids of this urdmad; both ends are
	// still to be started.
	Join(a, b End) (Conn, Conn)
}

// Link is how a neighbour is reached, an Ethernet address for instance. Only
// the network knows what is in it.
type Link any

// Conn is one side of a connection that the network carries. The network calls
// Manager.Established and Manager.Closed with its id.
type Conn interface {
	Owner() *ID
	Port() uint16         // ours
	PeerAddr() netip.Addr // the peer's, as given to Open
	ISN() wire.PSN        // the PSN of our first segment
	// Extension is what we offer a peer for a connection of qp.
	Extension(qp QueuePair) wire.TRPExtension

	// Start lets data flow. An active side acknowledges the accept with its
	// first packet.
	Start(s Start)
	// Acknowledge sends an acknowledgement in this turn.
	Acknowledge()
	// Disconnect ends the connection in good order, or gives up one that was
	// never started; the first is followed by Closed.
	Disconnect()
	// Abort ends a connection whose peer never answered.
	Abort()
	// Release gives up a connection that was never started.
	Release()
}

// Start is what a handshake agreed on.
type Start struct {
	QP       QueuePair
	IRD, ORD uint16 // in force: Reads we serve at once, Reads we may have open
	RNRRetry uint8  // rnr_retry_count of our side

	// Of our side, if AckTimeoutSet: how long a silent peer is waited for, as the
	// attributes timeout and retry_cnt of ibv_modify_qp(3) say it.
	AckTimeoutSet          bool
	AckTimeout, RetryCount uint8

	// Of a connection with another host.
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

// QueuePair is what an id connects.
type QueuePair interface {
	Number() wire.QPN
	// Connectable reports whether a connection can be started on it.
	Connectable() bool
	// Gone reports whether its client has destroyed it.
	Gone() bool
}

// Packet is a packet of the handshake: a request, accept or reject, or the fin
// of a connection that was never started here.
type Packet struct {
	Dev         int
	Link        Link // the neighbour that it came from or goes to
	Local, Peer netip.AddrPort
	TRP         wire.TRP
	Connect     wire.TRPConnect // not with a fin
	// Conn is the connection that a request or its answer came by; nil where they come
	// in packets, which may be lost, repeated or forged.
	Conn Conn
}
