package qp

import (
	"urdma/urdmad/core/events"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// RecvQueue is where receives are taken from: a queue pair's own, or one that
// several queue pairs draw from.
type RecvQueue struct {
	ring   ring.ServerRQ
	maxSGE uint32
	head   uint32  // next to be taken
	done   uint32  // those before it have completed; of a shared one: were taken
	shared *Shared // nil: one queue pair's own

	resizing bool // slots may have been copied already: they keep their places
}

// Shared is what a receive queue has that several queue pairs draw from.
type Shared struct {
	Handle uint32
	PD     uint64         // as Config.PD
	Async  *events.Socket // asynchronous events
	Limit  uint32         // fewer receives than this raise one event; 0: none does
	users  int
	broken uint64 // see breaks
	Named         // of an XRC domain; else empty
}

// NewShared returns a shared receive queue in mem, as layout says.
func NewShared(s Shared, mem []byte, layout *abi.SRQResponse) *RecvQueue {
	r := &RecvQueue{maxSGE: layout.MaxSGE, shared: &s}
	r.ring.Init(mem, &layout.RQ)
	return r
}

// Resizing is the receives of a shared receive queue on their way to another ring.
type Resizing struct {
	r        *RecvQueue
	to       ring.ServerRQ
	at, prod uint32
}

// Resize begins to move the receives that wait to a ring in mem, as layout says; nil if
// it has no room for them. Their indices stay. The client posts none meanwhile.
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

// resizedAtOnce is how many receives a turn copies, of up to 1 KiB.
const resizedAtOnce = 128

// Step moves some of the receives, and reports whether there are more. After the last
// the queue has the new ring.
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

// Shared is nil for a queue pair's own receive queue.
func (r *RecvQueue) Shared() *Shared { return r.shared }

// InUse reports whether a queue pair draws from a shared receive queue.
func (s *Shared) InUse() bool { return s.users > 0 }

// Users is how many queue pairs draw from a shared receive queue, or may.
func (s *Shared) Users() int {
	if s.Domain != nil {
		return len(s.Domain.targets)
	}
	return s.users
}

// domain is the protection domain in which the keys of receives count.
func (r *RecvQueue) domain(q *QP) uint64 {
	if r.shared != nil {
		return r.shared.PD
	}
	return q.PD
}

// share counts the queue pairs that draw from a shared receive queue.
func (r *RecvQueue) share(by int) {
	if r.shared != nil {
		r.shared.users += by
	}
}

// checkLimit raises the event once fewer receives are posted than the limit.
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

// look copies the next receive out, if there is one, and returns its index. An
// index that the client got wrong is as good as none.
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

// Pick has a receive that which chooses from those that wait be the next.
func (r *RecvQueue) Pick(which func(n int) int) {
	if prod, err := r.ring.Prod(r.head); err == nil && prod-r.head > 1 && !r.resizing {
		r.ring.Swap(r.head, r.head+uint32(which(int(prod-r.head))))
	}
}

// taken says that what look found is taken.
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

// publish tells the client that the receive of an index is complete.
func (r *RecvQueue) publish(index uint32) {
	if r.shared != nil {
		return
	}
	r.done = index + 1
	r.ring.PublishCons(r.done)
}

// untouched reports that nothing was ever posted.
func (r *RecvQueue) untouched() bool {
	prod, err := r.ring.Prod(r.done)
	return err == nil && prod == 0
}

// reset skips what the client has posted.
func (r *RecvQueue) reset() {
	if r.shared != nil {
		return // others draw from it
	}
	if prod, err := r.ring.Prod(r.head); err == nil {
		r.head = prod
	}
	r.done = r.head
	r.ring.PublishCons(r.done)
}

// Slots is how many receives fit.
func (r *RecvQueue) Slots() int { return r.ring.Slots() }

// Posted is how many receives the client has posted and not had completed.
func (r *RecvQueue) Posted() int {
	if prod, err := r.ring.Prod(r.done); err == nil {
		return int(prod - r.done)
	}
	return 0
}
