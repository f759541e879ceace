package qp

import (
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// RecvQueue is where receives are taken from: a queue pair's own, or one that
// several queue pairs draw from.
type RecvQueue struct {
	ring   ring.ServerRQ
	maxSGE uint32
	head   uint32 // next to be taken
	done   uint32 // those before it have completed
}

func newRecvQueue(r ring.ServerRQ, maxSGE uint32) *RecvQueue {
	return &RecvQueue{ring: r, maxSGE: maxSGE}
}

// take copies the next receive out, if there is one, and returns its index. An
// index that the client got wrong is as good as none.
func (r *RecvQueue) take(rqe *abi.RQE, list []abi.SGE) (index uint32, ok bool) {
	prod, err := r.ring.Prod(r.head)
	if err != nil || prod == r.head {
		return 0, false
	}
	r.ring.Read(r.head, rqe, list)
	r.head++
	return r.head - 1, true
}

// publish tells the client that the receive of an index is complete.
func (r *RecvQueue) publish(index uint32) {
	r.done = index + 1
	r.ring.PublishCons(r.done)
}

// reset skips what the client has posted.
func (r *RecvQueue) reset() {
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
