package model

import "strconv"

// This file is the list of what providers may do differently, with what allows it. Each of these gives several
// states; docs/VERBS.md has the same list for readers.

func itoa(n int) string { return strconv.Itoa(n) }

// refusal is why a peer refuses an RDMA message.
type refusal int

const (
	badKey refusal = iota
	noRight
	misaligned
)

// refused: a key that does not allow it is a remote access error. The specification calls an operation that the queue
// pair does not allow an invalid request; adapters also answer with an access error.
func (s state) refused(side, qp int, why refusal) (next []state) {
	w := &s.pairs[side][qp].sends[s.pairs[side][qp].done]
	if w.right() == remoteWrite { // the packets before the one that was refused
		s.forgetTarget(side, qp, w)
	}
	if why != misaligned {
		n := s
		n.refuse(side, qp, remAccess, eventAccess)
		next = append(next, n)
	}
	if why != badKey {
		n := s
		n.refuse(side, qp, remInvalid, eventRequest)
		next = append(next, n)
	}
	return next
}

// forgetTarget makes unknown what a refused Write may have written: the first packets, if the key was right for them.
func (s *state) forgetTarget(side, qp int, w *Send) {
	for n := length(w.Elements); n > 0; n-- {
		if s.p.Access&w.right() != 0 && s.remote(1-side, qp, w, n) {
			s.memory[1-side].forget(w.At, n)
			return
		}
	}
}

// badReceive: a receive is too short, or names memory that can't be written. The receive says so, and the sender gets
// an invalid request or a remote operation error. The receiver may get IBV_EVENT_QP_REQ_ERR as well.
func (s state) badReceive(side, qp int, r Receive, status int) (next []state) {
	for _, e := range r.Elements { // what came before it was noticed
		if s.local(1-side, e, localWrite) {
			s.memory[1-side].forget(e.Offset, e.Length)
		}
	}
	s.see(1-side, ofReceives+qp, "%d status %d", r.ID, status)
	answer := remInvalid
	if status == locProt {
		answer = remOp
	}
	for _, event := range []int{0, eventRequest} {
		n := s
		n.refuse(side, qp, answer, event)
		next = append(next, n)
	}
	return next
}

// badInvalidation: no page says which error a Send with Invalidate of a wrong key is, nor what becomes of the receive.
func (s state) badInvalidation(side, qp int, r Receive) (next []state) {
	for _, status := range []int{remAccess, remInvalid, remOp} {
		for _, event := range []int{0, eventAccess, eventRequest} {
			for _, of := range []int{flushed, locQPOp, locProt, locAccess, general} {
				n := s
				n.see(1-side, ofReceives+qp, "%d status %d", r.ID, of)
				n.refuse(side, qp, status, event)
				next = append(next, n)
			}
		}
	}
	return next
}

// localStatuses: a window that can't be bound is a bind error; for an invalidation of a wrong key there is no one error.
func localStatuses(status int) []int {
	if status == bindError {
		return []int{bindError}
	}
	return []int{locQPOp, locProt, bindError}
}
