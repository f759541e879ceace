package verbs

import "urdma/verbs/abi"

// flushed makes the completions that urdmad owed when it ended. The caller holds
// the queue's lock and has emptied the ring.
func (q *CQ) flushed(out []Completion) (n int) {
	for _, p := range q.senders {
		for n < len(out) {
			id, op, ok := p.ring.SQ.Lost()
			if !ok {
				break
			}
			out[n] = Completion{ID: id, Status: StatusWRFlushErr, Op: Opcode(op).completion(), QPN: p.qpn}
			n++
		}
	}
	for _, p := range q.getters {
		for n < len(out) {
			id, ok := p.ring.RQ.Lost()
			if !ok {
				break
			}
			out[n] = Completion{ID: id, Status: StatusWRFlushErr, Op: DidRecv, QPN: p.qpn}
			n++
		}
	}
	return n
}

// completion is what a send work request's completion is called. Posted are only
// operations that there are; what else stands in the ring the program wrote there.
func (o Opcode) completion() CompletionOp {
	if op := abi.OperationOf(uint32(o)); op != nil {
		return CompletionOp(op.Completion)
	}
	return DidSend
}
