package qp

import (
	"net/netip"

	"urdma/reason"
	"urdma/urdmad/core/mem"
)

// Carrier moves the messages of one queue pair over a wire protocol, or to another queue pair of
// this urdmad. It sits above RDMAP, because not every protocol has RDMAP.
//
// The queue pair calls the methods below. The carrier calls the steps of arrive.go for the peer's
// messages, SendQueue.Sent and Acknowledge for the queue pair's own messages, and Fail.
type Carrier interface {
	// Transmit sends within the carrier's budget for a turn, and puts the queue pair in line
	// again if it could send more at once. It returns the number of pieces sent.
	Transmit() int

	// Failed is called when the queue pair has entered the error state for a reason of its own.
	// The connection ends at once and the peer is notified.
	Failed()

	// Faulted is called when an access to the client's memory has faulted. It reports whether the
	// carrier was accessing that memory and must stop, with the operation in progress not done.
	// If so, Failed follows at once, otherwise soon.
	Faulted() bool

	// Detach is called when the queue pair is destroyed or reset. The connection ends, and the
	// carrier drops its reference to the queue pair.
	Detach()

	// Serving returns the number of the peer's Reads that are not completely answered.
	Serving() int

	// Common returns the part that all connections have.
	Common() *Connection
}

// Connection is the part that the connections of all carriers have. Carriers embed it.
type Connection struct {
	Dev         int            // device number of our port
	Local, Peer netip.AddrPort // with the carrier's UDP port numbers, if it uses UDP
	IRD, ORD    uint16         // in force: limits of Reads that we serve, and that we may have outstanding
	PeerAccepts Messages       // messages that the peer accepts beyond RFC 5040's
	RNRRetry    uint8          // rnr_retry_count of our side (rdma_connect(3))
	Owner       any            // the object that set the connection up
	ByNumber    bool           // set up by ibv_modify_qp instead of rdma_cm: the queue pair outlives the connection
	PeerRNR     uint8          // if ByNumber: the peer's min_rnr_timer
	PeerMTU     uint8          // if ByNumber: the peer's path_mtu; 0: unknown, as is PeerPSN
	PeerPSN     uint32         // if ByNumber: the peer's rq_psn

	QP *QP // nil before the connection starts and after it has ended
}

// Common implements Carrier for types that embed a Connection.
func (c *Connection) Common() *Connection { return c }

// Messages is a set of message kinds that not every peer accepts.
type Messages uint8

// The message kinds, one bit each.
const (
	ImmediateData Messages = 1 << iota
	Atomics
	XRC // the peer's queue pair is of type XRC_RECV
)

// CloseReason is the cause of a connection's end.
type CloseReason uint8

// Causes passed to Manager.Closed.
const (
	CloseLocal      CloseReason = iota // disconnected here, or the queue pair failed or was destroyed
	CloseRemote                        // the peer ended the stream
	CloseTerminated                    // a message was refused, here or by the peer
	CloseDead                          // the peer was silent for the death time-out
	CloseMoved                         // our port no longer has the connection's address
)

// Why returns the reason that the queue pair reports for the end of its connection, if nothing
// has failed before.
func (r CloseReason) Why() reason.Number {
	return [...]reason.Number{CloseLocal: reason.Left, CloseRemote: reason.PeerLeft, CloseTerminated: reason.PeerRefused,
		CloseDead:  reason.Silent,
		CloseMoved: reason.AddressGone}[r]
}

// Dead reports whether the peer can no longer be reached.
func (r CloseReason) Dead() bool { return r == CloseDead || r == CloseMoved }

// Manager is notified when connections start and end. Calls come on the worker's thread.
type Manager interface {
	// Established reports that the peer's first acknowledgement of our accept has arrived.
	Established(c *Connection)
	// Closed reports the end of the connection, once.
	Closed(c *Connection, why CloseReason)
}

// Ending is the information in the last segment of a message.
type Ending struct {
	HasImmediate bool
	Immediate    uint32 // in the byte order in which the program stored it
	Invalidates  bool
	STag         mem.STag // STag to invalidate
	Solicited    bool

	// For a datagram: its sender, and the bytes of its header (GRH), which do not count as received.
	SrcQP, SourceLID, HeaderRoom uint32
}

// Verdict is the result of a step. The zero Verdict means that the step was carried out.
type Verdict struct {
	Is  Outcome
	Why mem.Violation // if Is is Denied
}

// Outcome is the kind of a Verdict.
type Outcome uint8

const (
	Done       Outcome = iota
	Busy               // too many bytes wait to be written to the client's memory; nothing was done, retry later
	NoReceive          // no receive is posted; nothing was done, retry later
	NoRoom             // the next receive is too small for the message; it stays posted
	BadReceive         // the receive was invalid, and has completed with an error
	NoQueue            // the message names a shared receive queue that does not exist
	TooLong            // the message is longer than its receive; the receive has not completed: see FailReceive
	Revoked            // the destination was deregistered; a receive has not completed: see FailReceive
	Denied             // the peer has no right to this access
)
