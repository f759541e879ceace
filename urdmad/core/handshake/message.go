// Package handshake has the messages by which two hosts set up a connection, or learn each other's queue pair of
// type UD. Packages cm and qpconnect decide which messages are sent. The packages of the wires encode and decode
// them: trp (docs/WIRE.md chapter 3), mpa (RFC 5044) and roce (InfiniBand vol. 1).
//
// Two events have no message here, because each wire reports them in its own way: the peer is ready (its first
// packet, or an RTU), and the peer has disconnected (a fin, the end of a TCP stream, or a DREQ).
package handshake

import "net/netip"

// Kind is what a message says.
type Kind uint8

// Kinds of messages.
const (
	Request  Kind = iota // asks for a connection
	Reply                // accepts a request
	Reject               // refuses a request
	Retry                // asks for a request with a token, which proves its sender's address; only over TRP
	Resolve              // asks for the queue pair of type UD at a port number
	Resolved             // names that queue pair, or has the reason why there is none
	Pending              // answers a copy of a Request or Resolve: the program has not decided yet
)

// Message is one message, as it was decoded or is to be encoded.
type Message struct {
	Kind        Kind
	Dev         int
	Link        any // the neighbour from which it came or to which it goes, see cm.Link
	Local, Peer netip.AddrPort
	Number      uint32 // chosen by its sender; identifies a Request, the sender of a Reply, or a Resolve
	Answers     uint32 // Number of the message that it answers
	Allowance   int    // bytes of IP packets that may answer an arrived message before its sender's address is proved
	Unusable    error  // why no connection can be made with what an arrived message offers, or nil

	IRD, ORD     uint16 // of a Request or Reply: Reads that its sender accepts at a time, wants outstanding
	RNRRetry     uint8  // how often its receiver is to retry for a receive of its sender
	TrafficClass uint8  // of the connection's packets; only over RoCEv2
	QPN          uint32 // the sender's queue pair
	QKey         uint32 // of a Resolved
	Reason       uint16 // of a Reject or Resolved, in InfiniBand's numbers; 0: none
	Token        uint32 // of a Retry, and of the Request that returns it; 0: none
	PrivateData  []byte // of an arrived message: the receiver may keep it
	ByNumber     ByNumber

	// Offer is what the sender's carrier offers to ours. Only the packages of the wires know its content; the
	// receiver passes it to the connection's Start.
	Offer any
}

// Reasons of a Reject (InfiniBand vol. 1).
const (
	Unsupported    = 5
	InvalidService = 8 // there is no listener
	Stale          = 10
	ByConsumer     = 28 // the program refuses
)

// ByNumber has the fields of a Request or Reply between queue pairs that are connected by number (docs/WIRE.md
// chapter 9); Target is 0 in all others.
type ByNumber struct {
	Target      uint32 // the queue pair to connect to
	Cookie      uint32 // of the sender's connection, or that of a challenge
	Echo        uint32 // the cookie last received from the peer, or 0
	MinRNRTimer uint8  // of the sender's queue pair
	PathMTU     uint8  // of the sender's queue pair, enum ibv_mtu; 0: unknown, and so is RQPSN
	RQPSN       uint32 // of the sender's queue pair
}
