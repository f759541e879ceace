package qp

import (
	"encoding/binary"
	"errors"
	"io"

	"urdma/reason"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// This file writes to client memory on the fallback path (jobs.go), and handles what has ended.

// submitWrite submits a job that writes to client c's memory, and returns the number of the
// write.
func (q *QP) submitWrite(c *Client, s *mem.Space, of request, job mem.Job, then func()) (n uint64) {
	n = q.jobs.issue(c)
	q.submit(s, of, n, job, func() {
		q.jobs.ended(n)
		q.finishReads()
		then()
		q.releaseDeferred()
		q.t.Wake(q) // the carrier may be able to acknowledge
	})
	return n
}

// FinishJobs calls the continuations of finished jobs, within a turn's budget, and returns their
// number.
func (t *Table) FinishJobs() (n int) {
	if len(t.unfinished) == 0 {
		t.unfinished = t.ended.Take()
	}
	for begun := t.spent; len(t.unfinished) > 0 && !t.Overspent(begun); n++ {
		j := t.unfinished[0]
		t.unfinished[0] = endedJob{}
		t.unfinished = t.unfinished[1:]
		t.spent += perWait
		if j.err != nil && j.write != 0 {
			j.qp.jobs.loses(j.write)
		}
		if j.err != nil && t.pairs[j.qp.QPN] == j.qp {
			if !j.qp.leaving && j.qp.state != abi.QPSErr && !errors.Is(j.err, io.EOF) { // io.EOF: the process has ended
				t.log.Warn("client memory cannot be reached through /proc/self/mem",
					"client", j.qp.Client.Name, "qpn", j.qp.QPN, "error", j.err)
			}
			j.qp.failUnreachable(j.of)
		}
		j.fn()
	}
	return n
}

// failUnreachable fails the queue pair because client memory cannot be accessed. If the memory
// belongs to a work request, that work request completes with the error. A peer's Read is left to
// the carrier, which refuses it (Source.Revoked).
func (q *QP) failUnreachable(of request) {
	if of.read != nil {
		of.read.lost = true
		return
	}
	if of.send {
		q.failSend(of.index, reason.LocalUnreachable)
		return
	}
	if r := &q.Recv; of.from != nil && r.active && r.from == of.from && r.index == of.index {
		r.fail(abi.StatusLocProtErr, uint32(reason.LocalUnreachable))
	}
	q.Fail(EventAccess, reason.LocalUnreachable)
}

// failSend fails the work request at index i. If some of it is still to be sent, it fails when it
// is the oldest; otherwise it fails at once, and the unfinished work requests before it are
// flushed.
func (q *QP) failSend(i uint32, why reason.Number) {
	if q.state == abi.QPSErr || q.carrier == nil || !q.SQ.Holds(i) {
		return
	}
	if wr := q.SQ.At(i); wr.State != SendSent {
		wr.State, wr.status, wr.vendor = SendFailed, abi.StatusLocProtErr, uint32(why)
		q.completeSends()
		return
	}
	q.failFirst(i, why)
	q.carrier.Failed()
}

// storeFallback writes src to a region. For a trusted client the bytes are in memory when the
// function returns; an error is handled like one of the goroutine.
func (q *QP) storeFallback(of request, r *mem.Region, va uint64, src []byte) {
	job := r.Job(va, src)
	job.Write = true
	if r.Space.Direct() && q.direct(r.Space, &job) == nil {
		q.countJob()
		return
	}
	c, waits := q.Owner(r), len(src)+perWait
	job.Buf = append([]byte(nil), src...)
	c.unwritten += waits
	q.submitWrite(c, r.Space, of, job, func() { c.unwritten -= waits })
}

// atomic carries out an atomic operation of q's peer at address va of region r. The access has
// been checked.
func (q *QP) atomic(r *mem.Region, va uint64, op *mem.AtomicOp, later func(original uint64)) (original uint64,
	done bool) {
	if original, done = r.Atomic(va, op); done {
		return original, true
	}
	buf, operation := make([]byte, mem.WordLen), *op
	if r.Space.Direct() && q.direct(r.Space, &mem.Job{Addr: r.ClientAddr(va), Buf: buf, Atomic: &operation}) == nil {
		return binary.NativeEndian.Uint64(buf), true
	}
	q.submitWrite(q.Owner(r), r.Space, request{}, mem.Job{Addr: r.ClientAddr(va), Buf: buf, Atomic: &operation}, func() {
		later(binary.NativeEndian.Uint64(buf))
	})
	return 0, false
}

// Unwritten lists the messages or segments that a carrier has placed for a queue pair but may not
// acknowledge yet, because their bytes wait to be written on the fallback path. They are
// identified by ascending marks.
type Unwritten struct {
	q     *QP
	seen  uint64 // jobs.issued at the last Placed
	marks []unwrittenMark
}

type unwrittenMark struct{ mark, until uint64 }

// Init starts the list for messages placed for q from now on.
func (u *Unwritten) Init(q *QP) { *u = Unwritten{q: q, seen: q.jobs.issued} }

// Placed records that the message or segment with this mark was placed, and nothing behind it.
func (u *Unwritten) Placed(mark uint64) {
	j := &u.q.jobs
	if u.seen == j.issued {
		return
	}
	u.seen = j.issued
	if !j.written(j.issued) {
		u.marks = append(u.marks, unwrittenMark{mark, j.issued})
	}
}

// Advanced reports whether more may be acknowledged than at the last call.
func (u *Unwritten) Advanced() (more bool) {
	for len(u.marks) > 0 && u.q.jobs.written(u.marks[0].until) {
		u.marks, more = u.marks[1:], true
	}
	return more
}

// First returns the first mark that may not be acknowledged, if there is one.
func (u *Unwritten) First() (mark uint64, ok bool) {
	u.Advanced()
	if len(u.marks) == 0 {
		return 0, false
	}
	return u.marks[0].mark, true
}

// Waits reports whether the write for the first mark is still in progress; false if it has
// failed.
func (u *Unwritten) Waits() bool {
	_, ok := u.First()
	return ok && u.q.jobs.done < u.marks[0].until
}
