package roce

import "strconv"

// Opcode is the first byte of a packet: transport in the upper three bits, operation in the lower five.
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

// Operations, numbered as for reliable connections.
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

var operationNames = [32]string{"Send First", "Send Middle", "Send Last", "Send Last with Immediate", "Send Only",
	"Send Only with Immediate",
	"RDMA Write First", "RDMA Write Middle", "RDMA Write Last", "RDMA Write Last with Immediate", "RDMA Write Only",
	"RDMA Write Only with Immediate",
	"RDMA Read Request", "RDMA Read Response First", "RDMA Read Response Middle", "RDMA Read Response Last",
	"RDMA Read Response Only",
	"Acknowledge", "Atomic Acknowledge", "Compare and Swap", "Fetch and Add",
	SendLastInvalidate: "Send Last with Invalidate", SendOnlyInvalidate: "Send Only with Invalidate"}

// String names the operation, without the transport (InfiniBand vol. 1).
func (o Opcode) String() string {
	if o == CNP {
		return "congestion notification"
	}
	if name := operationNames[o.Operation()]; name != "" {
		return name
	}
	return "opcode " + strconv.Itoa(int(o))
}

// Traits are the properties of the packets with an opcode.
type Traits uint16

// Extension headers in the order of the packet, then the packet's place in its message.
const (
	hasDETH Traits = 1 << iota
	hasXRCETH
	hasRETH
	hasAtomicETH
	hasAETH
	hasAtomicAckETH
	HasImmediate
	HasInvalidate
	First    // first packet of its message
	Last     // last packet of its message; First|Last is the only one
	Send     // part of a message that consumes a receive, but not of a Write
	Write    // part of an RDMA Write
	Response // sent to the requester: an acknowledgement, or the result of a Read or an atomic
	known
)

// Is reports whether t has all of the given traits.
func (t Traits) Is(all Traits) bool { return t&all == all }

// Traits returns the traits of an opcode, 0 for an unassigned one.
func (o Opcode) Traits() Traits { return traits[o] }

// Transport is the transport in the opcode.
func (o Opcode) Transport() Opcode { return o & transportMask }

// Operation is the opcode without its transport.
func (o Opcode) Operation() Opcode { return o &^ transportMask }

var operations = [32]Traits{
	SendFirst: Send | First, SendMiddle: Send, SendLast: Send | Last, SendLastImmediate: Send | Last | HasImmediate,
	SendOnly: Send | First | Last, SendOnlyImmediate: Send | First | Last | HasImmediate,
	SendLastInvalidate: Send | Last | HasInvalidate, SendOnlyInvalidate: Send | First | Last | HasInvalidate,
	WriteFirst: Write | First | hasRETH, WriteMiddle: Write, WriteLast: Write | Last,
	WriteLastImmediate: Write | Last | HasImmediate,
	WriteOnly:          Write | First | Last | hasRETH, WriteOnlyImmediate: Write | First | Last | hasRETH | HasImmediate,
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
