package qp

import (
	"urdma/reason"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// This file says why a queue pair has failed: a number for its completions and its state,
// and facts for whoever watches its client, who makes a text of them.

// Failure is why a queue pair fails, and what that is about.
type Failure struct {
	Why    reason.Number
	WR     *SendWR // the work request that fails; nil: none does
	Status uint32  // of it, enum ibv_wc_status
	Found
}

// Found is what was found wrong. Its zero value: nothing is known.
type Found struct {
	Is           Outcome // of the step of arrive.go that refused a message; Done: none did
	Why          mem.Violation
	STag         mem.STag
	Addr, Length uint64
	Want         uint32        // rights, enum ibv_access_flags
	WRID         uint64        // of the receive
	Room         uint32        // bytes, of a receive that is too short
	Local        reason.Number // what is wrong with the receive
	Element      Element       // of the list of the receive, or of the send, that is wrong; of length 0: none
	Given        reason.Number // see Refuse; 0: the refusal is the step's own
	Peer         *QP           // which refuses a send, and has found the above; nil: this queue pair has
	Refusal      Refusal       // by a peer that refuses a send
}

// Element is an element of a scatter/gather list.
type Element struct {
	Index        int
	Addr         uint64
	Length, LKey uint32
	PD           uint64 // of the queue that it was posted to
}

func elementOf(index int, e *abi.SGE, pd uint64) Element {
	return Element{Index: index, Addr: e.Addr, Length: e.Length, LKey: e.LKey, PD: pd}
}

// Why is the reason of the error state; 0: there is none, or it is unknown.
func (q *QP) Why() reason.Number { return q.why }

// deny notes a violation, and is the verdict for it.
func (q *QP) deny(v mem.Violation, stag mem.STag, addr, length uint64, want uint32) Verdict {
	q.found = Found{Is: Denied, Why: v, STag: stag, Addr: addr, Length: length, Want: want}
	return Verdict{Denied, v}
}

// PeerFound takes what a peer of this urdmad, which refuses the oldest send, has found.
func (q *QP) PeerFound(peer *QP) {
	if q.Client.User == "" || q.Client.User != peer.Client.User {
		q.PeerRefused(peer.Refusal())
	} else if peer.found.Is != Done || peer.found.Given != 0 {
		q.found = peer.found
		q.found.Peer = peer
	}
}

// FlushForReceive ends a queue pair because of a wrong receive.
func (q *QP) FlushForReceive() {
	why := q.found.Local
	switch {
	case q.found.Given != 0:
		why = q.found.Given
	case q.found.Is != BadReceive:
		why = reason.LocalRevoked
	}
	if q.state != abi.QPSErr {
		q.because(why, nil, abi.StatusSuccess)
	}
	q.Flush(why)
}

// because notes why the queue pair fails, and tells of it, the first time. wr is the work
// request that fails with a status; nil: none does.
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

// about is what was found that concerns a failure. Messages of the peer's are none of a send's.
func (q *QP) about(wr *SendWR, why reason.Number) Found {
	switch {
	case wr == nil, q.found.Peer != nil:
		return q.found
	case why >= reason.LocalNoRegion && why <= reason.LocalWindow:
		return Found{Element: q.wrong}
	}
	return Found{Refusal: q.found.Refusal}
}

// Named is the region or window that a key names, unless it belongs to another client: to
// whoever uses the queue pair that is as none.
func (q *QP) Named(s mem.STag) *mem.Region {
	if r := q.t.Regions.Lookup(s); r != nil && r.Space == q.Owner(r).Space {
		return r
	}
	return nil
}

// Gone is the region that a key has named until not long ago, likewise.
func (q *QP) Gone(s mem.STag) (g mem.Gone, ok bool) {
	g, ok = q.t.Regions.Gone(s)
	return g, ok && (g.PD == q.PD || q.Domain != nil && q.Domain.protection[g.PD] != nil)
}

// wrongElement is why an element of a scatter/gather list is not what a queue pair of
// protection domain pd may use.
func (q *QP) wrongElement(el *abi.SGE, pd uint64) reason.Number {
	switch r := q.Named(mem.STag(el.LKey)); {
	case r == nil:
		return reason.LocalNoRegion
	case r.Of() != nil:
		return reason.LocalWindow
	case r.PD != pd:
		return reason.LocalDomain
	case !r.Contains(el.Addr, uint64(el.Length)):
		return reason.LocalBounds
	}
	return reason.LocalNoRight
}

// lengthWrong is the reason for a message that is too long.
func (q *QP) lengthWrong() reason.Number {
	if q.Type == abi.QPTypeUD {
		return reason.DatagramSize
	}
	return reason.MessageTooLong
}

// notAgreed is the reason for an operation that the queue pair or its peer does not have.
func (q *QP) notAgreed(op *abi.Operation) reason.Number {
	switch {
	case !op.Supported || !op.Of(q.Type):
		return reason.Operation
	case op.WritesLocal && !op.Atomic && q.SQ.maxReads == 0, op.Atomic && q.SQ.accepts&Atomics != 0 && q.SQ.maxReads == 0:
		return reason.NoReads
	}
	return reason.PeerTakesNone
}

// statusOf is the completion status, enum ibv_wc_status, for what is wrong with a work
// request.
func statusOf(why reason.Number) uint32 {
	switch {
	case why >= reason.LocalNoRegion && why <= reason.LocalUnreachable:
		return abi.StatusLocProtErr
	case why == reason.MessageTooLong, why == reason.AtomicTooShort, why == reason.DatagramSize:
		return abi.StatusLocLenErr
	}
	return abi.StatusLocQPOpErr
}
