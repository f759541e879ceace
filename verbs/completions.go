package verbs

import (
	"slices"

	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// completionPair is a queue pair as its completion queues know it.
type completionPair struct {
	ID     uint64 // identifies the queue pair in completions
	QPN    uint32
	Shared bool // it uses a shared receive queue, whose slots are freed when urdmad takes the receives
	Ring   *ring.ClientQP
}

// completions takes completions out of a ring, for one goroutine at a time: in order, with the queue pair of
// each and the slots that it frees, and after urdmad's end the flushed ones. Waiting for completions is left
// to CQ.
type completions struct {
	ring      ring.ClientCQ
	leftover  []abi.CQE                  // taken out of the ring when a queue pair was closed
	senders   []*completionPair          // queue pairs whose sends complete here
	receivers []*completionPair          // queue pairs whose receives complete here
	pairs     map[uint64]*completionPair // senders and receivers by ID
	last      *completionPair            // queue pair of the last completion taken, or nil
	scratch   [16]abi.CQE
}

// init attaches to the memory of a new ring, or of one that replaces another after a resize. Queue pairs and
// leftover completions are kept.
func (q *completions) init(mem []byte, r *abi.CQResponse) {
	if q.ring.Init(mem, r); q.pairs == nil {
		q.pairs = map[uint64]*completionPair{}
	}
}

// take returns up to n completions, oldest first, and frees their slots. The result is valid until the next
// call and empty if there are none. If urdmad has ended (dead) and the ring is empty, it returns flushed
// completions.
func (q *completions) take(n int, dead bool) []abi.CQE {
	n = min(n, len(q.scratch))
	for len(q.leftover) > 0 {
		got := copy(q.scratch[:n], q.leftover)
		q.leftover = q.leftover[got:]
		if out := q.give(q.scratch[:got], dead); len(out) > 0 {
			return out
		}
	}
	for {
		got := q.ring.Poll(q.scratch[:n])
		if got == 0 {
			break
		}
		if out := q.give(q.scratch[:got], dead); len(out) > 0 {
			return out
		}
	}
	if !dead {
		return nil
	}
	return q.flushedWork(q.scratch[:0:n])
}

// give frees the slots of completions. It removes those that came after their work requests had been flushed
// here: a connection can end before urdmad does.
func (q *completions) give(got []abi.CQE, dead bool) []abi.CQE {
	kept := 0
	for i := range got {
		e := &got[i]
		if p := q.pair(e.UserHandle); p != nil {
			if dead && p.Ring.WasLost(e) {
				continue
			}
			if !p.Shared || e.Opcode&abi.WCRecv == 0 {
				p.Ring.Polled(e)
			}
		}
		if kept != i {
			got[kept] = *e
		}
		kept++
	}
	return got[:kept]
}

func (q *completions) pair(id uint64) *completionPair {
	if q.last == nil || q.last.ID != id {
		q.last = q.pairs[id]
	}
	return q.last
}

// flushedWork makes flushed completions for requests that were outstanding when urdmad ended, as many as out has
// room for.
func (q *completions) flushedWork(out []abi.CQE) []abi.CQE {
	for _, p := range q.senders {
		for len(out) < cap(out) {
			id, op, ok := p.Ring.SQ.Lost()
			if !ok {
				break
			}
			out = append(out, abi.CQE{WRID: id, Status: abi.StatusWRFlushErr, Opcode: completes(op), QPNum: p.QPN})
		}
	}
	for _, p := range q.receivers {
		for len(out) < cap(out) {
			id, ok := p.Ring.RQ.Lost()
			if !ok {
				break
			}
			out = append(out, abi.CQE{WRID: id, Status: abi.StatusWRFlushErr, Opcode: abi.WCRecv, QPNum: p.QPN})
		}
	}
	return out
}

// completes returns the opcode of a send's completion. Only valid operations are posted; another number in
// the ring was written there by the program itself.
func completes(opcode uint32) uint32 {
	if op := abi.OperationOf(opcode); op != nil {
		return op.Completion
	}
	return abi.WCSend
}

// join makes the sends or the receives of a queue pair complete here.
func (q *completions) join(p *completionPair, sends bool) {
	if sends {
		q.senders = append(q.senders, p)
	} else {
		q.receivers = append(q.receivers, p)
	}
	q.pairs[p.ID] = p
}

// leave removes a queue pair and its completions.
func (q *completions) leave(p *completionPair) {
	same := func(x *completionPair) bool { return x == p }
	q.senders, q.receivers = slices.DeleteFunc(q.senders, same), slices.DeleteFunc(q.receivers, same)
	delete(q.pairs, p.ID)
	q.last = nil
	q.drop(p)
}

// drop removes completions of a queue pair that were not taken yet.
func (q *completions) drop(p *completionPair) {
	rest := slices.Clone(q.leftover)
	for {
		got := q.ring.Poll(q.scratch[:])
		if got == 0 {
			break
		}
		rest = append(rest, q.scratch[:got]...)
	}
	q.leftover = slices.DeleteFunc(rest, func(e abi.CQE) bool { return e.UserHandle == p.ID })
}
