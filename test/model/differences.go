package model

import (
	"slices"
	"syscall"
)

// This file lists what providers may do differently, each with its source. A difference gives several states;
// docs/VERBS.md has the same list for readers.

// refusal is the reason for which a peer refuses an RDMA message.
type refusal int

const (
	badKey refusal = iota
	noRight
	misaligned
)

// refused: a key that does not allow it is a remote access error. The specification calls an operation that the queue
// pair does not allow an invalid request; adapters also answer with an access error. An address that is not aligned is
// an invalid request; RFC 7306 has no code of its own for it, and the receiver may get IBV_EVENT_QP_ACCESS_ERR.
func (s state) refused(side, qp int, why refusal) (next []state) {
	w := &s.pairs[side][qp].sends[s.pairs[side][qp].done]
	// rxe completes the receive, too.
	if s.rxe && w.takesReceive() && len(*s.receives(1-side, qp, w.To)) > 0 {
		n := s
		rest := n.receives(1-side, qp, w.To)
		r := (*rest)[0]
		*rest = (*rest)[1:]
		n.see(1-side, ofReceives+qp, "%d status %d", r.ID, remAccess)
		next = n.refuse(side, qp, remAccess, eventAccess)
	}
	if w.right() == remoteWrite { // the packets before the refused one
		s.forgetTarget(side, qp, w)
	}
	if why != misaligned {
		next = append(next, s.refuse(side, qp, remAccess, eventAccess)...)
	}
	if why == misaligned {
		next = append(next, s.refuse(side, qp, remInvalid, eventAccess)...)
	}
	if why != badKey {
		next = append(next, s.refuse(side, qp, remInvalid, eventRequest)...)
	}
	return next
}

// forgetTarget makes the bytes unknown that a refused Write may have written: its first packets, if the key was right
// for them.
func (s *state) forgetTarget(side, qp int, w *Send) {
	for n := length(w.Elements); n > 0; n-- {
		if s.p.Access&w.right() != 0 && s.remote(1-side, qp, w, n) {
			s.overtakeReads(side, qp, w)
			s.memory[1-side].forget(w.At, n)
			return
		}
	}
}

// writtenBefore: a Write with immediate data that waits for a receive may have been written before, and may be checked
// again when it is repeated.
func (s state) writtenBefore(side, qp int, w *Send) ([]state, bool) {
	next, must := s.intoReceive(side, qp, w)
	if s.p.Access&remoteWrite == 0 || !s.remote(1-side, qp, w, length(w.Elements)) {
		next = append(next, s.refused(side, qp, badKey)...)
	}
	return next, must
}

// lateReceive: with one stream, the message itself waits at the peer. It may get a receive at the moment at which its
// sender gives up.
func lateReceive(placed []state, side, qp int) (next []state) {
	for _, s := range placed {
		p := &s.pairs[side][qp]
		if p.state == stateErr {
			continue
		}
		p.done--
		for _, n := range s.acknowledgeBeforeRefusal(side, qp) {
			n.failSend(side, qp, rnrExc)
			next = append(next, n)
		}
	}
	return next
}

// acknowledgeBeforeRefusal completes the sends in front of one that the peer has refused. With one stream, no answer
// follows the refusal: Reads whose answer has not come are flushed, and later ones have a completion in any case.
func (s state) acknowledgeBeforeRefusal(side, qp int) (next []state) {
	p := &s.pairs[side][qp]
	for i := 0; s.stream && i < p.done; i++ {
		if !p.sends[i].reads() {
			continue
		}
		n := s
		n.acknowledge(side, qp, i)
		q := &n.pairs[side][qp]
		for k := range q.done {
			w := &q.sends[k]
			if w.reads() {
				n.forgetResults(side, w)
				n.completeSend(side, qp, w, flushed)
			} else {
				n.see(side, ofSends+qp, "%d %d", w.ID, opcodes[w.Opcode].completion)
			}
		}
		q.sends, q.done = q.sends[q.done:], 0
		next = append(next, n)
	}
	s.acknowledge(side, qp, p.done)
	return append(next, s)
}

// refusedMeanwhile: a side that is to refuse a message may first hear that its own RDMA message was refused, like an
// adapter whose requester and responder work at the same time. Its peer, which has ended the connection, then hears no
// refusal.
func (s state) refusedMeanwhile(side, qp int) (next []state) {
	p := &s.pairs[side][qp]
	if !p.sending() || p.state == stateSQD || p.done == len(p.sends) {
		return nil
	}
	w := &p.sends[p.done]
	if w.local() || w.takesReceive() || s.localError(side, w) != success {
		return nil
	}
	states, _ := s.deliver(side, qp, w)
	for _, n := range states {
		if n.pairs[side][qp].refusal != 0 {
			next = append(next, n)
		} else {
			next = append(next, n.refusedMeanwhile(side, qp)...)
		}
	}
	return next
}

// badReceive: a receive is too short, or names memory that can't be written. The receive says so, and the sender gets
// an invalid request or a remote operation error. The receiver may get IBV_EVENT_QP_REQ_ERR as well, or for memory
// IBV_EVENT_QP_ACCESS_ERR. Wrong memory that the message does not need may be noticed, or not.
func (s state) badReceive(side, qp int, w *Send, r Receive, status int) (next []state) {
	s.forgetReceive(1-side, r)
	if s.rxe { // it calls both a receive without elements and an unknown lkey a local operation error
		n := s
		n.seeReceive(1-side, qp, w, "%d status %d", r.ID, locQPOp)
		next = n.refuse(side, qp, remOp, 0)
	}
	s.seeReceive(1-side, qp, w, "%d status %d", r.ID, status)
	answer, events := remInvalid, []int{0, eventRequest}
	if status == locProt {
		answer, events = remOp, append(events, eventAccess)
	}
	// Its own oldest send may fail before the refusal is sent; the peer then hears nothing any more.
	if own := &s.pairs[1-side][qp]; own.sending() && own.done == 0 && len(own.sends) > 0 && !own.sends[0].local() {
		if wrong := s.localError(1-side, &own.sends[0]); wrong != success {
			n := s
			n.failSend(1-side, qp, wrong)
			next = append(next, n)
		}
	}
	if !s.stream {
		next = append(next, s.refusedMeanwhile(1-side, qp)...)
	}
	for _, event := range events {
		next = append(next, s.refuse(side, qp, answer, event)...)
		if s.stream && s.p.RNRRetry < 7 { // as lateReceive
			next = append(next, s.refuse(side, qp, rnrExc, event)...)
		}
	}
	return next
}

// mayArrive returns how many of the oldest datagrams that a queue pair has sent may arrive next. The order is left
// open; the kernel passes several to one worker's socket, and those for another worker come later.
func (s *state) mayArrive(p *pair) int {
	if s.overtake {
		return len(p.flying)
	}
	return min(len(p.flying), 1)
}

// tooLong: a datagram that is longer than its receive is lost and the receive stays, or the receive fails.
func (s state) tooLong(side, qp int) []state { return []state{s, s.badDatagram(side, qp, locLength)} }

// refusedPost: a datagram that is longer than a packet of the port is refused when it is posted, or fails in its turn.
// s has the requests in front of it. rxe refuses an atomic at an address that is not a multiple of 8 in this way.
func (s state) refusedPost(side, qp int, w *Send) []result {
	if !(s.p.UD && length(w.Elements) > maxMessage) && !(s.rxe && w.atomic() && w.At%8 != 0) {
		return nil
	}
	s.posted(side, qp)
	return []result{{s, syscall.EINVAL}}
}

// forgetReceive makes the bytes unknown that a message wrote before it was refused.
func (s *state) forgetReceive(side int, r Receive) {
	for _, e := range r.Elements {
		if s.local(side, e, localWrite) {
			s.memory[side].forget(e.Offset, e.Length)
		}
	}
}

// early: a bind or an invalidation needs no answer, and may take effect before those of the requests in front of it
// have come; if one of these fails, it is flushed nevertheless.
func (s state) early(side, qp int) []state {
	p := &s.pairs[side][qp]
	for i := p.done; i < len(p.sends) && (p.state == stateRTS || i < p.begun); i++ {
		w := &p.sends[i]
		if w.local() && w.early {
			continue
		}
		if !w.local() && s.localError(side, w) == success {
			continue
		}
		if !w.local() || i == p.done || s.changeWindow(side, qp, w) != success {
			return nil
		}
		p.sends = slices.Clone(p.sends)
		p.sends[i].early = true
		return []state{s}
	}
	return nil
}

// badInvalidation: no page says which error a Send with Invalidate of a wrong key has, nor how its receive completes.
func (s state) badInvalidation(side, qp int, r Receive) (next []state) {
	s.forgetReceive(1-side, r)
	if s.rxe { // it has acknowledged the message before
		s.see(1-side, ofReceives+qp, "%d status %d", r.ID, remInvalid)
		s.fail(1-side, qp)
		s.pairs[side][qp].done++
		return []state{s}
	}
	for _, status := range []int{remAccess, remInvalid, remOp} {
		for _, event := range []int{0, eventAccess, eventRequest} {
			for _, of := range []int{flushed, locQPOp, locProt, locAccess, general} {
				n := s
				n.see(1-side, ofReceives+qp, "%d status %d", r.ID, of)
				next = append(next, n.refuse(side, qp, status, event)...)
			}
		}
	}
	return next
}

// lateFlush: a receive that is posted in the error state is flushed; rxe does it with the next work that it has.
func (s state) lateFlush(side, qp int) state {
	s.flush(side, qp)
	return s
}

// emptyWithoutRight: a Write or Read of no bytes names no memory; qp_access_flags may forbid it, or not.
func (s state) emptyWithoutRight(side, qp int, w *Send) ([]state, bool) {
	next, must := s.carryOut(side, qp, w)
	return append(next, s.refused(side, qp, noRight)...), must
}

// neverNoticed: a send of rxe that once had to wait for a receive does not notice that its peer has failed since.
func (s *state) neverNoticed(side, qp int) bool {
	p := &s.pairs[side][qp]
	return s.rxe && p.done < len(p.sends) && p.sends[p.done].takesReceive()
}

// elementsOfAnswer: rxe looks at the elements of a Read or an atomic when the answer comes.
func (s state) elementsOfAnswer(side, qp int, w *Send) (next []state) {
	if !s.pairs[1-side][qp].receiving() {
		return nil
	}
	for _, why := range []refusal{badKey, noRight, misaligned} {
		next = append(next, s.refused(side, qp, why)...)
	}
	if w.atomic() && s.remote(1-side, qp, w, 8) {
		s.memory[1-side].forget(w.At, 8)
	}
	return append(next, s.failures(side, qp, []int{locProt, locQPOp})...)
}

// elementStatuses: rxe calls an lkey that no region has a local operation error, instead of a protection error.
func (s *state) elementStatuses(status int) []int {
	if s.rxe && status == locProt {
		return []int{locProt, locQPOp}
	}
	return []int{status}
}

// localStatuses: a window that can't be bound is a bind error; an invalidation of a wrong key has any of three.
func localStatuses(status int) []int {
	if status == bindError {
		return []int{bindError}
	}
	return []int{locQPOp, locProt, bindError}
}
