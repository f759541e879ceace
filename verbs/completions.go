package verbs

import (
	"slices"

	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// completionPair is what a completion queue knows of a queue pair.
type completionPair struct {
	ID     uint64 // what completions call it
	QPN    uint32
	Shared bool // it has no receive queue of its own: a shared one's slots are free when taken
	Ring   *ring.ClientQP
}

// completions are those of a completion queue, for one goroutine at a time: the order
// in which they are taken, whose they are, which slots they free, and those that are
// owed still when urdmad has ended. How programs wait for them is CQ's.
type completions struct {
	ring     ring.ClientCQ
	leftover []abi.CQE                  // taken out of the ring when a queue pair was closed
	senders  []*completionPair          // whose sends complete here
	getters  []*completionPair          // whose receives do
	pairs    map[uint64]*completionPair // both, by what completions call them
	last     *completionPair            // whose completion was taken last; or nil
	scratch  [16]abi.CQE
}

// init attaches to the memory of a queue that was made, or made anew with what
// waited in it. Queue pairs and what was taken out stay.
func (q *completions) init(mem []byte, r *abi.CQResponse) {
	if q.ring.Init(mem, r); q.pairs == nil {
		q.pairs = map[uint64]*completionPair{}
	}
}

// take takes up to n completions, oldest first, and has their queue pairs use the
// slots again. What it returns is valid until the next call; nothing means that
// there is nothing. Once urdmad has ended, dead, and the ring is empty, it is what
// urdmad owed.
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
	return q.owed(q.scratch[:0:n])
}

// give frees the slots of completions. It leaves out those that came after their
// work requests had been flushed here: a connection can end before urdmad does.
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

// owed makes the completions that urdmad owed when it ended, as many as out has
// room for.
func (q *completions) owed(out []abi.CQE) []abi.CQE {
	for _, p := range q.senders {
		for len(out) < cap(out) {
			id, op, ok := p.Ring.SQ.Lost()
			if !ok {
				break
			}
			out = append(out, abi.CQE{WRID: id, Status: abi.StatusWRFlushErr, Opcode: completes(op), QPNum: p.QPN})
		}
	}
	for _, p := range q.getters {
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

// completes is what a send work request's completion is called. Posted are only
// operations that there are; what else stands in the ring the program wrote there.
func completes(opcode uint32) uint32 {
	if op := abi.OperationOf(opcode); op != nil {
		return op.Completion
	}
	return abi.WCSend
}

// join has the work of a queue pair complete here, its sends or its receives.
func (q *completions) join(p *completionPair, sends bool) {
	if sends {
		q.senders = append(q.senders, p)
	} else {
		q.getters = append(q.getters, p)
	}
	q.pairs[p.ID] = p
}

// leave forgets a queue pair, and its completions.
func (q *completions) leave(p *completionPair) {
	same := func(x *completionPair) bool { return x == p }
	q.senders, q.getters = slices.DeleteFunc(q.senders, same), slices.DeleteFunc(q.getters, same)
	delete(q.pairs, p.ID)
	q.last = nil
	q.drop(p)
}

// drop forgets the completions of a queue pair that were not taken yet.
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
