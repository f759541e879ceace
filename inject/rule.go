package inject

import (
	"math/rand/v2"
	"syscall"
	"time"
)

// Point is a place where urdmad, or the library, asks whether something goes wrong.
type Point uint8

// The points. What Code is at each is said there.
const (
	Send     Point = iota + 1 // a posted send is taken; Code: enum ibv_wr_opcode
	Receive                   // a message begins to fill a receive
	Respond                   // a message of the peer's is looked at; Code: Message*
	Call                      // a request of a program; named by Function
	Post                      // ibv_post_send and its like, in the library; named by Function
	Notify                    // a completion event is sent
	CM                        // an event of rdma_cm is sent; Code: enum rdma_cm_event_type
	OnWire                    // a packet of a port; Wire says what happens
	Strictly                  // several of them; Strict says what happens
)

// What a peer's message is, at Respond.
const (
	MessageSend   = iota // takes a receive
	MessageWrite         // RDMA Write
	MessageRead          // RDMA Read
	MessageAtomic        // atomic operation
)

// Answer is what a responder makes of a message.
type Answer uint8

// The answers.
const (
	NoAnswer  Answer = iota
	Access           // the peer has no right to the memory: IBV_WC_REM_ACCESS_ERR there
	Operation        // the responder fails: IBV_WC_REM_OP_ERR
	Invalid          // the request is not valid: IBV_WC_REM_INV_REQ_ERR
	NotReady         // no receive is posted: RNR; the message waits
	Reject           // of a connection request: the listener refuses it
)

// AnyCode is the Code of a rule for all.
const AnyCode = -1

// Rule says what happens at a point, and to which of those who pass it.
type Rule struct {
	Point    Point
	Code     int64  // AnyCode: any
	Function string // at Call and Post: of libibverbs or librdmacm
	QPN      uint32 // 0: any
	PID      int    // 0: any

	Nth   uint64        // the first that it hits, from 1
	Count uint64        // how many it hits at most; 0: all
	P     float64       // probability of each; 0: 1
	Seed  uint64        // of the chance
	For   time.Duration // it ends by itself after that; 0: it doesn't

	Status uint32        // enum ibv_wc_status, at Send and Receive
	Answer Answer        // at Respond, and of connection requests
	Errno  syscall.Errno // at Call and Post
	Delay  time.Duration // at Call, Notify and CM
	Wire   *Wire         // at OnWire
	Strict *Strict       // at Strictly
}

// Draw is a rule at work.
type Draw struct {
	Rule
	Seen, Hits uint64 // that it was asked about, and that it hit
	rand       *rand.Rand
}

// NewDraw returns a rule at its beginning.
func NewDraw(r Rule) *Draw { return &Draw{Rule: r, rand: rand.New(rand.NewPCG(r.Seed, 0))} }

// Next counts one that the rule is for, and says whether it hits.
func (d *Draw) Next() bool {
	d.Seen++
	chance := d.P == 0 || d.rand.Float64() < d.P
	if !chance || d.Seen < d.Nth || d.Over() {
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
