package qp

import (
	"net/netip"

	"urdma/reason"
)

// Carrier moves the messages of one queue pair: over a wire protocol, or to
// another queue pair of this urdmad. It sits above RDMAP, because not every
// protocol has one.
//
// Down it is called as below. Up it calls the steps of arrive.go for messages of
// the peer's, SendQueue.Sent and Acknowledge for its own, and Fail.
type Carrier interface {
	// Transmit moves what the queue pair has to send, within the carrier's
	// budget for a turn, and puts the queue pair in line again if more could
	// go at once. It returns how many pieces it moved.
	Transmit() int

	// Failed: the queue pair has gone to the error state by itself. The
	// connection ends at once, the peer is told.
	Failed()

	// Faulted: the client's memory faulted. It reports whether the carrier was at
	// work there and must not go on: what was in progress was not done. Failed
	// follows, then at once, else soon.
	Faulted() bool

	// Detach: the queue pair is going away, or starts anew. The connection
	// ends, and the carrier forgets the queue pair.
	Detach()

	// Serving is how many of the peer's Reads have no complete answer yet.
	Serving() int

	// Common is what every carrier's connection has.
	Common() *Connection
}

// Connection is what every connection has, whatever carries it. Carriers embed
// it.
type Connection struct {
	Dev         int            // our port, as device number
	Local, Peer netip.AddrPort // a carrier over UDP: its port numbers
	IRD, ORD    uint16         // in force: Reads we serve, Reads we may have open
	Takes       Messages       // what the peer takes beyond RFC 5040's messages
	RNRRetry    uint8          // rnr_retry_count of our side (rdma_connect(3))
	Owner       any            // what set it up
	ByNumber    bool           // by ibv_modify_qp, not by rdma_cm: its queue pair outlives it
	PeerRNR     uint8          // by number: min_rnr_timer of the peer
	PeerMTU     uint8          // by number: path_mtu of the peer; 0: not known, and PeerPSN neither
	PeerPSN     uint32         // by number: rq_psn of the peer

	QP *QP // the queue pair served; nil before the connection starts and after it left it
}

// Common is Carrier's, for types that embed a Connection.
func (c *Connection) Common() *Connection { return c }

// Messages are kinds of messages that not every peer takes.
type Messages uint8

// The kinds; a bit each.
const (
	ImmediateData Messages = 1 << iota
	Atomics
	XRC // its queue pair is of type XRC_RECV
)

// CloseReason says how a connection ended.
type CloseReason uint8

// Reasons of Manager.Closed.
const (
	CloseLocal      CloseReason = iota // disconnected here, or the queue pair failed or went away
	CloseRemote                        // the peer's end of stream
	CloseTerminated                    // refused, here or by the peer
	CloseDead                          // the peer was silent for the death time-out
	CloseMoved                         // our port has lost the connection's address
)

// Why is the reason that a connection's end is for its queue pair, if nothing has failed.
func (r CloseReason) Why() reason.Number {
	return [...]reason.Number{CloseLocal: reason.Left, CloseRemote: reason.PeerLeft, CloseTerminated: reason.PeerRefused, CloseDead: reason.Silent,
		CloseMoved: reason.AddressGone}[r]
}

// Dead reports that nothing reaches the peer any more.
func (r CloseReason) Dead() bool { return r == CloseDead || r == CloseMoved }

// Manager is told what becomes of connections. Calls come on the worker's
// thread.
type Manager interface {
	// Established: the peer's first acknowledgement of our accept arrived.
	Established(c *Connection)
	// Closed: the connection is over, for the reason given. It comes once.
	Closed(c *Connection, why CloseReason)
}
