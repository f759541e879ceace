package qp

import (
	"encoding/binary"
	"errors"
	"io"

	"urdma/reason"
	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// This file is the path to memory that urdmad cannot map: it is read and written
// through the client's /proc/self/mem. Of a trusted client the worker does it at once
// (mem.Space.Direct). Else the goroutine of the client's mem.Space does: the poll loop
// hands it jobs and takes up what they finished in a later turn.

// endedJob is a job that ended.
type endedJob struct {
	qp    *QP
	of    request
	write uint64 // its number; 0: it only read
	fn    func() // what to go on with
	err   error
}

// request names the work request whose memory a job is for; the zero request: a peer's,
// which is for a region.
type request struct {
	send  bool       // it is in the send queue
	from  *RecvQueue // where it was posted, of a receive
	index uint32     // in its queue
}

// jobs are a queue pair's writes on the fallback path, numbered from 1, and what waits
// for them.
type jobs struct {
	issued   uint64
	done     uint64              // up to here all have ended
	early    map[uint64]struct{} // that have ended before others, of another client's memory
	lost     uint64              // the first that could not be written; 0: none
	last     *Client             // whose memory the last is for
	deferred []deferredRecv
	tell     bool // say when they have completed: see tellLast
}

// perWait is what a read or write of the client's memory takes beside its bytes,
// and a completion that waits for one: about as many bytes, rounded up.
const perWait = 512

// issue counts a write to a client's memory, and returns its number.
func (j *jobs) issue(of *Client) uint64 {
	j.issued++
	j.last = of
	return j.issued
}

// ended notes that a write has ended. Those to one client's memory end in order.
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

// loses notes that a write failed.
func (j *jobs) loses(n uint64) {
	if j.lost == 0 || n < j.lost {
		j.lost = n
	}
}

// directCost is what a system call takes in the worker's turn, as bytes that it could
// have copied.
const directCost = 4 << 10

// submit is for jobs that only read; n is 0, or the number of one that writes.
func (q *QP) submit(s *mem.Space, of request, n uint64, job mem.Job, then func()) {
	t := q.t
	q.countJob()
	job.Done = func(err error) {
		if err != nil && !job.Write {
			clear(job.Buf) // it may hold what was staged for others before
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

// Submitted is how many jobs FinishJobs is to go on with, or has.
func (t *Table) Submitted() int64 { return t.submitted }

// direct carries a job out in the worker's turn.
func (q *QP) direct(s *mem.Space, job *mem.Job) error {
	q.t.spent += directCost
	return s.Do(job)
}

// submitWrite submits a job that writes to memory of a client, and returns its number.
func (q *QP) submitWrite(c *Client, s *mem.Space, of request, job mem.Job, then func()) (n uint64) {
	n = q.jobs.issue(c)
	q.submit(s, of, n, job, func() {
		q.jobs.ended(n)
		q.finishReads()
		then()
		q.releaseDeferred()
		q.t.Wake(q) // the carrier may acknowledge
	})
	return n
}

// FallbackEnded reports whether FinishJobs has anything to do; one load.
func (t *Table) FallbackEnded() bool { return len(t.unfinished) > 0 || t.ended.Full() }

// FinishJobs goes on with what waited for jobs that ended, as far as a turn's budget goes,
// and returns how many did.
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
			if !j.qp.leaving && j.qp.state != abi.QPSErr && !errors.Is(j.err, io.EOF) { // EOF: the process has ended
				t.log.Warn("client memory cannot be reached through /proc/self/mem",
					"client", j.qp.Client.Name, "qpn", j.qp.QPN, "error", j.err)
			}
			j.qp.failUnreachable(j.of)
		}
		j.fn()
	}
	return n
}

// failUnreachable fails the queue pair because memory can't be reached: the work request
// whose memory it is, if there is one, completes with that as its error.
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

// failSend fails the work request at an index in its turn, or if all of it was sent at
// once; those before it that are not done are flushed then.
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

// readMemory reads len(buf) bytes at va of r and calls then on the worker's thread. A
// region that was deregistered is read no more. One of no memory has its turn behind
// what is read before: a Stage's chunks come in order.
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

// Backlogged reports whether so much waits to be written to the client's memory
// that nothing more should come; its pages may block for ever.
func (c *Client) Backlogged() bool { return c.unwritten >= MaxUnwritten }

// backlogged reports whether nothing more should come by the queue pair for a client:
// so much waits for that client, or for the one whose memory the queue pair waits for.
func (q *QP) backlogged(c *Client) bool {
	return c.Backlogged() || q.jobs.done != q.jobs.issued && q.jobs.last.Backlogged()
}

// storeFallback writes src to a region. Of a trusted client it is there when the
// function returns; an error is found like one of the goroutine.
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

// atomic carries an atomic operation of q's peer out at va of r, which was checked.
func (q *QP) atomic(r *mem.Region, va uint64, op *mem.AtomicOp, later func(original uint64)) (original uint64, done bool) {
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

// Unwritten is what a carrier has placed for a queue pair and may not acknowledge yet:
// messages or segments, by marks that ascend, whose bytes wait to be written on the
// fallback path.
type Unwritten struct {
	q     *QP
	seen  uint64 // of jobs.issued
	marks []unwrittenMark
}

type unwrittenMark struct{ mark, until uint64 }

// Init begins with what is placed for q from now on.
func (u *Unwritten) Init(q *QP) { *u = Unwritten{q: q, seen: q.jobs.issued} }

// Placed says that what has the mark, and nothing behind it, was placed.
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

// Advanced reports whether more may be acknowledged than when it was last asked.
func (u *Unwritten) Advanced() (more bool) {
	for len(u.marks) > 0 && u.q.jobs.written(u.marks[0].until) {
		u.marks, more = u.marks[1:], true
	}
	return more
}

// First is the first mark that may not be acknowledged, if there is one.
func (u *Unwritten) First() (mark uint64, ok bool) {
	u.Advanced()
	if len(u.marks) == 0 {
		return 0, false
	}
	return u.marks[0].mark, true
}

// Waits reports whether the write of the first mark is still to end: it does not if the
// write has failed.
func (u *Unwritten) Waits() bool {
	_, ok := u.First()
	return ok && u.q.jobs.done < u.marks[0].until
}
