package verbs

import (
	"sync/atomic"

	"urdma/verbs/abi"
)

// workRing is how a ring is read after urdmad's end: the rings outlive it and
// tell what was outstanding. The completion queue's lock guards it.
type workRing struct {
	mem          []byte // the queue pair's memory
	prod, cons   *uint32
	offset       int
	mask, stride uint32
	flushed      uint32 // one past the last request that was reported flushed
}

// next returns where the slot of the oldest request lies that neither urdmad
// completed nor we flushed. What is published counts: a goroutine that posts at
// this moment is served next time.
func (w *workRing) next() (at int, ok bool) {
	oldest := atomic.LoadUint32(w.cons) // partner: urdmad's store when a request completed
	if int32(w.flushed-oldest) > 0 {
		oldest = w.flushed
	}
	if int32(atomic.LoadUint32(w.prod)-oldest) <= 0 {
		return 0, false
	}
	w.flushed = oldest + 1
	return w.offset + int((oldest&w.mask)*w.stride), true
}

// outstanding is how many requests urdmad has not completed.
func (w *workRing) outstanding() int {
	return int(atomic.LoadUint32(w.prod) - atomic.LoadUint32(w.cons))
}

// flushed makes completions of what was outstanding when urdmad ended. The
// caller holds the queue's lock.
func (q *CQ) flushed(out []Completion) (n int) {
	for _, p := range q.senders {
		for n < len(out) {
			at, ok := p.sends.next()
			if !ok {
				break
			}
			e := abi.At[abi.SQE](p.mem, at)
			out[n] = Completion{ID: e.WRID, Status: StatusWRFlushErr, Op: Opcode(e.Opcode).completion(), QPN: p.qpn}
			n++
		}
	}
	for _, p := range q.getters {
		for n < len(out) {
			at, ok := p.gets.next()
			if !ok {
				break
			}
			out[n] = Completion{ID: abi.At[abi.RQE](p.mem, at).WRID, Status: StatusWRFlushErr, Op: DidRecv, QPN: p.qpn}
			n++
		}
	}
	return n
}

// completion is what a send work request's completion is called.
func (o Opcode) completion() CompletionOp {
	switch o {
	case OpWrite:
		return DidWrite
	case OpRead:
		return DidRead
	}
	return DidSend
}
