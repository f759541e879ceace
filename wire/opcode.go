package wire

// Opcode is an RDMAP opcode (RFC 5040 section 4.2, RFC 7306 section 4).
type Opcode uint8

const (
	OpWrite          Opcode = 0
	OpReadRequest    Opcode = 1
	OpReadResponse   Opcode = 2
	OpSend           Opcode = 3
	OpSendInv        Opcode = 4
	OpSendSE         Opcode = 5
	OpSendSEInv      Opcode = 6
	OpTerminate      Opcode = 7
	OpImmediate      Opcode = 8
	OpImmediateSE    Opcode = 9
	OpAtomicRequest  Opcode = 10
	OpAtomicResponse Opcode = 11
)

// Untagged queue numbers (RFC 5040 section 4.4, RFC 7306 section 7).
const (
	QueueSend           = 0
	QueueReadRequest    = 1
	QueueTerminate      = 2
	QueueAtomicResponse = 3
)

// opcodeInfo is what an opcode determines about its DDP segments.
type opcodeInfo struct {
	name   string
	tagged bool
	single bool   // the message is one segment: MO 0, last
	queue  uint32 // untagged only
}

// opcodes has a row for each 4-bit value, so that an index needs no check. Rows without a name are unassigned.
var opcodes = [16]opcodeInfo{
	OpWrite:          {name: "RDMA Write", tagged: true},
	OpReadRequest:    {name: "RDMA Read Request", single: true, queue: QueueReadRequest},
	OpReadResponse:   {name: "RDMA Read Response", tagged: true},
	OpSend:           {name: "Send", queue: QueueSend},
	OpSendInv:        {name: "Send with Invalidate", queue: QueueSend},
	OpSendSE:         {name: "Send with Solicited Event", queue: QueueSend},
	OpSendSEInv:      {name: "Send with Solicited Event and Invalidate", queue: QueueSend},
	OpTerminate:      {name: "Terminate", single: true, queue: QueueTerminate},
	OpImmediate:      {name: "Immediate Data", single: true, queue: QueueSend},
	OpImmediateSE:    {name: "Immediate Data with Solicited Event", single: true, queue: QueueSend},
	OpAtomicRequest:  {name: "Atomic Request", single: true, queue: QueueReadRequest},
	OpAtomicResponse: {name: "Atomic Response", single: true, queue: QueueAtomicResponse},
}

func (op Opcode) String() string {
	if op < 16 && opcodes[op].name != "" {
		return opcodes[op].name
	}
	return "RDMAP opcode " + decimal(uint32(op))
}

// Queue is the untagged queue of the opcode; 0 for tagged opcodes.
func (op Opcode) Queue() uint32 { return opcodes[op&15].queue }

// IsSend reports whether op is one of the four Sends, whose message goes into a posted receive.
func (op Opcode) IsSend() bool { return op >= OpSend && op <= OpSendSEInv }

// TakesReceive reports whether a message consumes a receive: those on queue 0 do.
func (op Opcode) TakesReceive() bool {
	return op.IsSend() || op == OpImmediate || op == OpImmediateSE
}

// Invalidates reports whether op is a Send whose header names an STag to invalidate.
func (op Opcode) Invalidates() bool { return op == OpSendInv || op == OpSendSEInv }

// Solicited reports whether the message raises a solicited event.
func (op Opcode) Solicited() bool {
	return op == OpSendSE || op == OpSendSEInv || op == OpImmediateSE
}

// decimal formats n without fmt, so that users of this package need not link fmt.
func decimal(n uint32) string {
	var b [10]byte
	i := len(b)
	for {
		i--
		b[i] = '0' + byte(n%10)
		if n /= 10; n == 0 {
			return string(b[i:])
		}
	}
}

// IsTerminate looks at a segment's opcode without further checks.
func IsTerminate(segment []byte) bool {
	return len(segment) >= UntaggedLen && Opcode(segment[1]&0xf) == OpTerminate && segment[0]&0x80 == 0
}
