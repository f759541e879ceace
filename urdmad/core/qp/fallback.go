package qp

import (
	"encoding/binary"
	"errors"
	"io"

	"urdma/reason"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// This file is the fallback path: memory that urdmad cannot map is read and written through the
// client's /proc/self/mem. For a trusted client the worker does that itself (mem.Space.Direct).
// For other clients the goroutine of the client's mem.Space does it: the poll loop submits jobs
// and handles finished ones in a later turn.

// endedJob is a finished job.
type endedJob struct {
	qp    *QP
	of    request
	write uint64 // number of the write; 0: the job only read
	fn    func() // continuation
	err   error
}

// request identifies the work request that a job serves. The zero request is the peer's access to
// a region.
type request struct {
	send  bool       // the work request is in the send queue
	from  *RecvQueue // the queue of a receive
	index uint32     // in its queue
}

// jobs tracks a queue pair's writes on the fallback path, numbered from 1, and the completions
// that wait for them.
type jobs struct {
	issued   uint64
	done     uint64              // all writes up to this number have ended
	early    map[uint64]struct{} // writes that ended before earlier ones, to another client's memory
	lost     uint64              // the first write that failed; 0: none
	last     *Client             // the client whose memory the newest write is for
	deferred []deferredRecv
	tell     bool // send an event when they have completed: see tellLast
}

// perWait is the cost, in bytes, of a read or write of client memory in addition to its data, and
// of a completion that waits for one; rounded up.
const perWait = 512

// issue counts a write to a client's memory, and returns its number.
func (j *jobs) issue(of *Client) uint64 {
	j.issued++
	j.last = of
	return j.issued
}

// ended records that write n has ended. Writes to the memory of one client end in order.
func (j *jobs) ended(n uint64) {
	if n != j.done+1 {
		if j.early == nil {
			j.early = map[uint64]struct{}{}
		}
		j.early[n] = struct{}{}
		return
	}
	for j.done = n; len(j.early) > 0; j.done++ {
		if _, ok := j.early[j.done+1]; !ok {
			break
		}
		delete(j.early, j.done+1)
	}
}

// written reports whether all writes up to n are in memory.
func (j *jobs) written(n uint64) bool { return j.done >= n && (j.lost == 0 || n < j.lost) }

// loses records that write n failed.
func (j *jobs) loses(n uint64) {
	if j.lost == 0 || n < j.lost {
		j.lost = n
	}
}

// directCost is the cost of a system call in the worker's turn, as the number of bytes that could
// be copied meanwhile.
const directCost = 4 << 10

// submit starts a job, and calls then when it has ended. n is the number of a write, or 0 for a
// read.
func (q *QP) submit(s *mem.Space, of request, n uint64, job mem.Job, then func()) {
	t := q.t
	q.countJob()
	job.Done = func(err error) {
		if err != nil && !job.Write {
			clear(job.Buf) // the buffer may hold another source's bytes
		}
		t.ended.Put(endedJob{q, of, n, then, err})
		t.wake()
	}
	if !s.Direct() {
		t.submitted++
		s.Submit(job)
	} else if err := q.direct(s, &job); err != nil || n != 0 {
		t.submitted++
		job.Done(err)
	} else {
		then()
	}
}

func (q *QP) countJob() {
	q.t.Stats.FallbackJobs++
	q.Stats.FallbackJobs++
}

// Submitted returns the number of jobs that FinishJobs has handled or will handle.
func (t *Table) Submitted() int64 { return t.submitted }

// direct carries out a job in the worker's turn.
func (q *QP) direct(s *mem.Space, job *mem.Job) error {
	q.t.spent += directCost
	return s.Do(job)
}

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

// FallbackEnded reports whether FinishJobs has anything to do; it costs one atomic load.
func (t *Table) FallbackEnded() bool { return len(t.unfinished) > 0 || t.ended.Full() }

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
// belongs to a work request, that work request completes with the error.
func (q *QP) failUnreachable(of request) {
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

// readMemory reads len(buf) bytes at va of region r and then calls then on the worker's thread. A
// deregistered region is not read. A null region takes its turn behind earlier reads, because the
// chunks of a ReadAhead must come in order.
func (q *QP) readMemory(of request, r *mem.Region, va uint64, buf []byte, then func()) {
	switch {
	case r.Dead():
		clear(buf) // as in submit
		q.t.ended.Put(endedJob{qp: q, fn: then, err: errRevoked})
		return
	case r.Null():
		clear(buf)
		if q.Client.Space.Direct() {
			then()
		} else {
			q.submit(q.Client.Space, of, 0, mem.Job{Write: true}, then)
		}
		return
	}
	r.Hold()
	q.submit(r.Space, of, 0, mem.Job{Addr: r.ClientAddr(va), Buf: buf}, func() {
		r.Release()
		then()
	})
}

var errRevoked = errors.New("qp: the memory was deregistered")

// Backlogged reports whether so many bytes wait to be written to the client's memory that no more
// messages should be placed; the client may block its pages for ever.
func (c *Client) Backlogged() bool { return c.unwritten >= MaxUnwritten }

// backlogged reports whether the queue pair should place no more messages for client c: too many
// bytes wait for c, or for the client whose memory the queue pair's newest write is for.
func (q *QP) backlogged(c *Client) bool {
	return c.Backlogged() || q.jobs.done != q.jobs.issued && q.jobs.last.Backlogged()
}

// storeFallback writes src to a region. For a trusted client the bytes are in memory when the
// function returns; an error is handled like one of the goroutine.
func (q *QP) storeFallback(of request, r *mem.Region, va uint64, src []byte) {
	if r.Space.Direct() && q.direct(r.Space, &mem.Job{Write: true, Addr: r.ClientAddr(va), Buf: src}) == nil {
		q.countJob()
		return
	}
	c := q.Owner(r)
	buf := append([]byte(nil), src...)
	c.unwritten += len(buf) + perWait
	q.submitWrite(c, r.Space, of, mem.Job{Write: true, Addr: r.ClientAddr(va), Buf: buf}, func() {
		c.unwritten -= len(buf) + perWait
	})
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
