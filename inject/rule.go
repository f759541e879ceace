package inject

import (
	"math/rand/v2"
	"syscall"
	"time"
)

// Point is a place in urdmad or the library where a rule can make something fail.
type Point uint8

// The points, with the meaning of Code at each.
const (
	Send     Point = iota + 1 // a posted send is accepted; Code: enum ibv_wr_opcode
	Receive                   // a message begins to fill a receive
	Respond                   // a message of the peer is checked; Code: Message*
	Call                      // a request of a program; Function names it
	Post                      // ibv_post_send and similar, in the library; Function names it
	Notify                    // a completion event is sent
	CM                        // an event of rdma_cm is sent; Code: enum rdma_cm_event_type
	OnWire                    // a packet passes a port; Wire says what happens
	Strictly                  // several points; Strict says what happens
)

// Kinds of a peer's message, at Respond.
const (
	MessageSend   = iota // consumes a receive
	MessageWrite         // RDMA Write
	MessageRead          // RDMA Read
	MessageAtomic        // atomic operation
)

// Answer is a responder's answer to a message.
type Answer uint8

// The answers.
const (
	NoAnswer  Answer = iota
	Access           // the peer has no right to the memory: the peer sees IBV_WC_REM_ACCESS_ERR
	Operation        // the responder fails: the peer sees IBV_WC_REM_OP_ERR
	Invalid          // the request is not valid: the peer sees IBV_WC_REM_INV_REQ_ERR
	NotReady         // no receive is posted: RNR; the message waits
	Reject           // the listener refuses a connection request
)

// AnyCode in a Rule matches every Code.
const AnyCode = -1

// Rule says what happens at a point, and which events it hits.
type Rule struct {
	Point    Point
	Code     int64  // AnyCode: any
	Function string // at Call and Post: a function of libibverbs or librdmacm
	QPN      uint32 // 0: any
	PID      int    // 0: any

	Nth   uint64        // the first matching event that it hits, from 1
	Bytes uint64        // at Send: the first one that it hits is that with which all have more bytes; 0: no condition
	Count uint64        // how many events it hits at most; 0: all
	P     float64       // probability for each event; 0: 1
	Seed  uint64        // of the random numbers
	For   time.Duration // how long the rule lasts; 0: no limit

	Status uint32        // enum ibv_wc_status, at Send and Receive
	Answer Answer        // at Respond, and for connection requests
	Errno  syscall.Errno // at Call and Post
	Delay  time.Duration // at Call, Notify and CM
	Wire   *Wire         // at OnWire
	Strict *Strict       // at Strictly
}

// Draw is an active rule.
type Draw struct {
	Rule
	Seen, Hits uint64 // matching events, and those that it hit
	bytes      uint64 // of the matching events
	rand       *rand.Rand
}

// NewDraw activates a rule.
func NewDraw(r Rule) *Draw { return &Draw{Rule: r, rand: rand.New(rand.NewPCG(r.Seed, 0))} }

// Next counts one that the rule is for, of so many bytes, and says whether it hits.
func (d *Draw) Next(bytes uint32) bool {
	d.Seen++
	d.bytes += uint64(bytes)
	chance := d.P == 0 || d.rand.Float64() < d.P
	if !chance || d.Seen < d.Nth || d.Bytes > 0 && d.bytes <= d.Bytes || d.Over() {
		return false
	}
	d.Hits++
	return true
}

// IntN counts one that the rule is for, and draws a number below n for it.
func (d *Draw) IntN(n int) int {
	d.Seen++
	return d.rand.IntN(n)
}

// Over reports whether the rule will hit nothing any more.
func (d *Draw) Over() bool { return d.Count > 0 && d.Hits >= d.Count }
