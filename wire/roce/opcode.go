package roce

import "strconv"

// Opcode is the first byte of a packet: the transport in the upper three bits, the
// operation in the lower five.
type Opcode uint8

// Transports.
const (
	RC  Opcode = 0 << 5
	UC  Opcode = 1 << 5
	UD  Opcode = 3 << 5
	XRC Opcode = 5 << 5

	transportMask Opcode = 7 << 5
)

// CNP is the congestion notification packet (annex A17).
const CNP Opcode = 0x81

// Operations, as reliable connections have them.
const (
	SendFirst          Opcode = 0
	SendMiddle         Opcode = 1
	SendLast           Opcode = 2
	SendLastImmediate  Opcode = 3
	SendOnly           Opcode = 4
	SendOnlyImmediate  Opcode = 5
	WriteFirst         Opcode = 6
	WriteMiddle        Opcode = 7
	WriteLast          Opcode = 8
	WriteLastImmediate Opcode = 9
	WriteOnly          Opcode = 10
	WriteOnlyImmediate Opcode = 11
	ReadRequest        Opcode = 12
	ResponseFirst      Opcode = 13
	ResponseMiddle     Opcode = 14
	ResponseLast       Opcode = 15
	ResponseOnly       Opcode = 16
	Acknowledge        Opcode = 17
	AtomicAcknowledge  Opcode = 18
	CompareSwap        Opcode = 19
	FetchAdd           Opcode = 20
	SendLastInvalidate Opcode = 22
	SendOnlyInvalidate Opcode = 23
)

var operationNames = [32]string{"Send First", "Send Middle", "Send Last", "Send Last with Immediate", "Send Only", "Send Only with Immediate",
	"RDMA Write First", "RDMA Write Middle", "RDMA Write Last", "RDMA Write Last with Immediate", "RDMA Write Only", "RDMA Write Only with Immediate",
	"RDMA Read Request", "RDMA Read Response First", "RDMA Read Response Middle", "RDMA Read Response Last", "RDMA Read Response Only",
	"Acknowledge", "Atomic Acknowledge", "Compare and Swap", "Fetch and Add", SendLastInvalidate: "Send Last with Invalidate", SendOnlyInvalidate: "Send Only with Invalidate"}

// String is the operation, without the transport (InfiniBand vol. 1).
func (o Opcode) String() string {
	if o == CNP {
		return "congestion notification"
	}
	if name := operationNames[o.Operation()]; name != "" {
		return name
	}
	return "opcode " + strconv.Itoa(int(o))
}

// Traits are what an opcode says of its packet.
type Traits uint16

// Extension headers, in the order in which they stand, and places in a message.
const (
	hasDETH Traits = 1 << iota
	hasXRCETH
	hasRETH
	hasAtomicETH
	hasAETH
	hasAtomicAckETH
	HasImmediate
	HasInvalidate
	First    // of the packets of its message
	Last     // likewise; a packet that is both is its message
	Send     // of a message that takes a receive, other than a Write's
	Write    // of an RDMA Write
	Response // goes to the requester: an acknowledgement, or what a Read or an atomic has found
	known
)

// Is reports whether an opcode has all of some traits.
func (t Traits) Is(all Traits) bool { return t&all == all }

// Traits are those of an opcode, 0 for one that nobody has.
func (o Opcode) Traits() Traits { return traits[o] }

// Transport is the opcode's.
func (o Opcode) Transport() Opcode { return o & transportMask }

// Operation is the opcode without its transport.
func (o Opcode) Operation() Opcode { return o &^ transportMask }

var operations = [32]Traits{
	SendFirst: Send | First, SendMiddle: Send, SendLast: Send | Last, SendLastImmediate: Send | Last | HasImmediate,
	SendOnly: Send | First | Last, SendOnlyImmediate: Send | First | Last | HasImmediate,
	SendLastInvalidate: Send | Last | HasInvalidate, SendOnlyInvalidate: Send | First | Last | HasInvalidate,
	WriteFirst: Write | First | hasRETH, WriteMiddle: Write, WriteLast: Write | Last, WriteLastImmediate: Write | Last | HasImmediate,
	WriteOnly: Write | First | Last | hasRETH, WriteOnlyImmediate: Write | First | Last | hasRETH | HasImmediate,
	ReadRequest: First | Last | hasRETH, CompareSwap: First | Last | hasAtomicETH, FetchAdd: First | Last | hasAtomicETH,
	ResponseFirst: Response | First | hasAETH, ResponseMiddle: Response, ResponseLast: Response | Last | hasAETH,
	ResponseOnly: Response | First | Last | hasAETH, Acknowledge: Response | First | Last | hasAETH,
	AtomicAcknowledge: Response | First | Last | hasAETH | hasAtomicAckETH,
}

var traits = func() (all [256]Traits) {
	for i, t := range operations {
		if t == 0 {
			continue
		}
		op, of := Opcode(i), t|known
		all[RC|op] = of
		if op <= WriteOnlyImmediate {
			all[UC|op] = of
		}
		if op == SendOnly || op == SendOnlyImmediate {
			all[UD|op] = of | hasDETH
		}
		all[XRC|op] = of
		if !t.Is(Response) {
			all[XRC|op] |= hasXRCETH
		}
	}
	all[CNP] = known | First | Last
	return all
}()
