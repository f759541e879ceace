package qp

import (
	"urdma/reason"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// This file carries out local work requests, which need no peer: they bind and invalidate memory
// windows, in order with the other work requests.

// localNext reports whether the work request at Next is local.
func (s *SendQueue) localNext() bool { return s.next != s.tail && s.At(s.next).isLocal() }

// carryOutLocal carries out the local work requests at Next, and returns their number. A
// completion among them may end the connection.
func (q *QP) carryOutLocal() (n int) {
	s := &q.SQ
	for n < fetchBudget && q.state == abi.QPSRTS && s.next != s.tail {
		wr := s.At(s.next)
		if wr.State != SendQueued || !wr.isLocal() || !s.mayStart(wr) {
			break
		}
		n++
		if !q.manage(wr) {
			wr.State, wr.status, wr.vendor = SendFailed, abi.StatusMWBindErr, uint32(reason.WrongWindow)
			break
		}
		s.advance()
	}
	if n > 0 {
		q.completeSends()
	}
	return n
}

// manage binds or invalidates a window. If the memory that peers could reach through the window
// is on the fallback path, the work request completes after the writes already issued to it.
func (q *QP) manage(wr *SendWR) bool {
	t := q.t.Regions
	stag := wr.STag
	if wr.Op.Completion == abi.WCBindMW {
		stag = wr.RKey
	}
	var before *mem.Region
	if w := t.Window(stag); w != nil {
		before = w.Bound()
	}
	if !changeWindow(t, wr, q.user()) {
		return false
	}
	if before != nil && !before.Shared() {
		q.afterWrites(before.Space, wr)
	}
	return true
}

func changeWindow(t *mem.Table, wr *SendWR, by mem.User) bool {
	if wr.Op.Completion == abi.WCLocalInv {
		return t.Invalidate(wr.STag, by) == mem.Allowed
	}
	b := wr.binding(by)
	return t.Bind(&b)
}

// afterWrites makes wr wait for all writes to a client's memory that were issued before,
// whichever peers they came from.
func (q *QP) afterWrites(s *mem.Space, wr *SendWR) {
	if s.Direct() {
		return
	}
	wr.asyncUntil = q.submitWrite(q.Client, s, request{}, mem.Job{Write: true}, func() {})
}
