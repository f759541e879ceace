package qp

import (
	"urdma/urdmad/core/events"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// RecvQueue is a receive queue: one queue pair's own, or shared by several queue pairs.
type RecvQueue struct {
	ring   ring.ServerRQ
	maxSGE uint32
	head   uint32  // index of the next receive to take
	done   uint32  // receives before this index have completed; if shared: were taken
	shared *Shared // nil: one queue pair's own

	resizing bool // slots may have been copied already and must not be swapped
}

// Shared is the additional state of a shared receive queue.
type Shared struct {
	Handle uint32
	PD     uint64         // as Config.PD
	Async  *events.Socket // asynchronous events
	Limit  uint32         // srq_limit: one event when fewer receives are posted; 0: off
	users  int
	broken broken
	Named  // zero unless in an XRC domain
}

// NewShared returns a shared receive queue whose ring lies in mem as layout says.
func NewShared(s Shared, mem []byte, layout *abi.SRQResponse) *RecvQueue {
	r := &RecvQueue{maxSGE: layout.MaxSGE, shared: &s}
	r.ring.Init(mem, &layout.RQ)
	return r
}

// Resizing moves the receives of a shared receive queue to another ring.
type Resizing struct {
	r        *RecvQueue
	to       ring.ServerRQ
	at, prod uint32
}

// Resize begins to move the waiting receives to a ring in mem, laid out as layout says. It
// returns nil if they do not fit. Receives keep their indices. The client must not post
// meanwhile.
func (r *RecvQueue) Resize(mem []byte, layout *abi.SRQResponse) *Resizing {
	prod, err := r.ring.Prod(r.head)
	if err != nil || prod-r.head > layout.MaxWR {
		return nil
	}
	m := &Resizing{r: r, at: r.head, prod: prod}
	m.to.Init(mem, &layout.RQ)
	r.resizing = true
	return m
}

// resizedAtOnce is the number of receives copied in a turn, each of up to 1 KiB.
const resizedAtOnce = 128

// Step moves some of the receives and reports whether more are left. After the last one the queue
// uses the new ring.
func (m *Resizing) Step() (more bool) {
	r := m.r
	for n := 0; m.at != m.prod && n < resizedAtOnce; n++ {
		m.to.Copy(&r.ring, m.at)
		m.at++
	}
	if m.at != m.prod {
		return true
	}
	m.to.Begin(r.head, m.prod)
	r.ring, r.resizing = m.to, false
	return false
}

// Shared returns the state of a shared receive queue, or nil for a queue pair's own queue.
func (r *RecvQueue) Shared() *Shared { return r.shared }

// InUse reports whether any queue pair draws from the shared receive queue.
func (s *Shared) InUse() bool { return s.users > 0 }

// Users returns the number of queue pairs that draw, or may draw, from the shared receive queue.
func (s *Shared) Users() int {
	if s.Domain != nil {
		return len(s.Domain.targets)
	}
	return s.users
}

// domain returns the protection domain against which the local keys of receives are checked.
func (r *RecvQueue) domain(q *QP) uint64 {
	if r.shared != nil {
		return r.shared.PD
	}
	return q.PD
}

// share adds by to the number of queue pairs that draw from a shared receive queue.
func (r *RecvQueue) share(by int) {
	if r.shared != nil {
		r.shared.users += by
	}
}

// checkLimit raises IBV_EVENT_SRQ_LIMIT_REACHED once fewer receives are posted than the limit.
func (r *RecvQueue) checkLimit(t *Table) {
	s := r.shared
	if s == nil || s.Limit == 0 || r.Posted() >= int(s.Limit) {
		return
	}
	s.Limit = 0
	ev := abi.AsyncEvent{EventType: abi.EventSRQLimitReached, Handle: s.Handle}
	t.send(s.Async, abi.Bytes(&ev))
}

func newRecvQueue(r ring.ServerRQ, maxSGE uint32) *RecvQueue {
	return &RecvQueue{ring: r, maxSGE: maxSGE}
}

// look copies the next receive out without taking it, and returns its index; ok is false if there
// is none, or if the client's index is invalid.
func (r *RecvQueue) look(rqe *abi.RQE, list []abi.SGE) (index uint32, ok bool) {
	if r.empty() {
		return 0, false
	}
	r.ring.Read(r.head, rqe, list)
	return r.head, true
}

// empty reports whether no receive waits.
func (r *RecvQueue) empty() bool {
	prod, err := r.ring.Prod(r.head)
	return err != nil || prod == r.head
}

// Pick makes the waiting receive number which(n), of n, the next one.
func (r *RecvQueue) Pick(which func(n int) int) {
	if prod, err := r.ring.Prod(r.head); err == nil && prod-r.head > 1 && !r.resizing {
		r.ring.Swap(r.head, r.head+uint32(which(int(prod-r.head))))
	}
}

// taken takes the receive that look has returned.
func (r *RecvQueue) taken() {
	r.head++
	if r.shared != nil { // the slot is copied: it is free
		r.done = r.head
		r.ring.PublishCons(r.done)
	}
}

// take takes the next receive.
func (r *RecvQueue) take(rqe *abi.RQE, list []abi.SGE) (index uint32, ok bool) {
	if index, ok = r.look(rqe, list); ok {
		r.taken()
	}
	return index, ok
}

// publish tells the client that the receive at index is complete.
func (r *RecvQueue) publish(index uint32) {
	if r.shared != nil {
		return
	}
	r.done = index + 1
	r.ring.PublishCons(r.done)
}

// untouched reports whether no receive was ever posted.
func (r *RecvQueue) untouched() bool {
	prod, err := r.ring.Prod(r.done)
	return err == nil && prod == 0
}

// reset skips the receives that the client has posted.
func (r *RecvQueue) reset() {
	if r.shared != nil {
		return // other queue pairs use it
	}
	if prod, err := r.ring.Prod(r.head); err == nil {
		r.head = prod
	}
	r.done = r.head
	r.ring.PublishCons(r.done)
}

// Slots returns the capacity of the queue.
func (r *RecvQueue) Slots() int { return r.ring.Slots() }

// Posted returns the number of receives posted but not completed.
func (r *RecvQueue) Posted() int {
	if prod, err := r.ring.Prod(r.done); err == nil {
		return int(prod - r.done)
	}
	return 0
}

// Receive is the receiving side of a queue pair. It holds the receive work request that an
// arriving message fills, one at a time (arrive.go).
type Receive struct {
	q           *QP
	from        *RecvQueue // queue that the receive was taken from
	active      bool
	interrupted bool // its message will not continue: the next message uses the receive
	id          uint64
	index       uint32 // in from
	sges        []element
	nsge        int
	capacity    uint32
	got         uint32
}

func (r *Receive) init(q *QP) {
	r.q = q
	r.sges = make([]element, max(q.RQ.maxSGE, 1))
}

// Active reports whether a message is being received, and how many of its bytes were scattered.
func (r *Receive) Active() (active bool, got uint32) {
	if !r.active || r.interrupted {
		return false, 0
	}
	return true, r.got
}

// Interrupt drops the unfinished message, if there is one. The next message is placed in the same
// receive, from the beginning.
func (r *Receive) Interrupt() { r.interrupted = r.active }

func (r *Receive) drop() {
	for i := range r.sges[:r.nsge] {
		r.sges[i].region.Release()
		r.sges[i] = element{}
	}
	r.active, r.interrupted, r.nsge = false, false, 0
}
