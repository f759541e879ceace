package qp

import (
	"urdma/reason"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// This file records why a queue pair has failed: a number for its completions and its state, and
// facts for the client's observer, which turns them into text.

// Failure is the reason why a queue pair fails, with facts about it.
type Failure struct {
	Why    reason.Number
	WR     *SendWR // the failed work request; nil: none
	Status uint32  // status of WR, enum ibv_wc_status
	Found
}

// Found has the facts about a refused message or an invalid work request. Its zero value means
// that nothing is known.
type Found struct {
	Is           Outcome // result of the step of arrive.go that refused a message; Done: none did
	Why          mem.Violation
	STag         mem.STag
	Addr, Length uint64
	Want         uint32        // rights needed, enum ibv_access_flags
	WRID         uint64        // wr_id of the receive
	Room         uint32        // length in bytes of the receive that is too short
	Local        reason.Number // why the receive is invalid
	Element      Element       // invalid element of the receive or send; length 0: none
	Given        reason.Number // reason given to Refuse; 0: the step itself has refused
	Peer         *QP           // queue pair that refused our send and found these facts; nil: this queue pair
	Refusal      Refusal       // reason from the peer that refused our send
}

// Why returns the reason for the error state; 0 if there is none or it is unknown.
func (q *QP) Why() reason.Number { return q.why }

// deny records an access violation and returns the Verdict for it.
func (q *QP) deny(v mem.Violation, stag mem.STag, addr, length uint64, want uint32) Verdict {
	q.found = Found{Is: Denied, Why: v, STag: stag, Addr: addr, Length: length, Want: want}
	return Verdict{Denied, v}
}

// because records and reports the reason why the queue pair fails, the first time it is called.
// wr is the work request that fails with status; nil if none does.
func (q *QP) because(why reason.Number, wr *SendWR, status uint32) {
	if q.why != 0 || q.leaving {
		return
	}
	q.why = why
	if q.Client.Watch != nil {
		q.Client.Watch.Failed(q, &Failure{Why: why, WR: wr, Status: status, Found: q.about(wr, why)})
	}
	q.found, q.wrong = Found{}, Element{}
}

// about returns the facts that belong to a failure. Facts about the peer's messages do not belong
// to the failure of a send.
func (q *QP) about(wr *SendWR, why reason.Number) Found {
	switch {
	case wr == nil, q.found.Peer != nil:
		return q.found
	case why >= reason.LocalNoRegion && why <= reason.LocalWindow:
		return Found{Element: q.wrong}
	}
	return Found{Refusal: q.found.Refusal}
}

// Named returns the region or window that key s names, or nil. A region of another client counts
// as none, so that the queue pair's user learns nothing about it.
func (q *QP) Named(s mem.STag) *mem.Region {
	if r := q.t.Regions.Lookup(s); r != nil && r.Space == q.Owner(r).Space {
		return r
	}
	return nil
}

// Gone returns the recently deregistered region that key s named, under the same rule.
func (q *QP) Gone(s mem.STag) (g mem.Gone, ok bool) {
	g, ok = q.t.Regions.Gone(s)
	return g, ok && (g.PD == q.PD || q.Domain != nil && q.Domain.protection[g.PD] != nil)
}

// lengthWrong returns the reason for a message that is too long.
func (q *QP) lengthWrong() reason.Number {
	if q.unconnected() {
		return reason.DatagramSize
	}
	return reason.MessageTooLong
}

// notAgreed returns the reason for an operation that the queue pair or its peer does not support.
func (q *QP) notAgreed(op *abi.Operation) reason.Number {
	switch {
	case !op.Supported || !op.Of(q.Type):
		return reason.Operation
	case op.WritesLocal && !op.Atomic && q.SQ.maxReads == 0, op.Atomic && q.SQ.accepts&Atomics != 0 && q.SQ.maxReads == 0:
		return reason.NoReads
	}
	return reason.PeerTakesNone
}

// statusOf returns the completion status, enum ibv_wc_status, for the reason why a work request
// is invalid.
func statusOf(why reason.Number) uint32 {
	switch {
	case why >= reason.LocalNoRegion && why <= reason.LocalUnreachable:
		return abi.StatusLocProtErr
	case why == reason.MessageTooLong, why == reason.AtomicTooShort, why == reason.DatagramSize:
		return abi.StatusLocLenErr
	}
	return abi.StatusLocQPOpErr
}
