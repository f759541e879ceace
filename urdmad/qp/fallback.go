package qp

import (
	"encoding/binary"
	"errors"

	"urdma/urdmad/mem"
	"urdma/verbs/abi"
)

// This file is the slow path: memory that urdmad cannot map is read and written
// through the client's /proc/self/mem by the goroutine of its mem.Space. The
// poll loop hands it jobs and takes up what they finished in a later turn.

// endedJob is a job that ended.
type endedJob struct {
	qp  *QP
	fn  func() // what to go on with
	err error
}

// jobs are a queue pair's writes on the fallback path, and what waits for them.
type jobs struct {
	issued, done uint64
	deferred     []deferredRecv
	last         bool // say when they have completed: see tellLast
}

// perWait is what a write that waits for the client's memory takes beside its bytes,
// and a completion that waits for one: about as many bytes, rounded up.
const perWait = 512

// deferredRecv is a receive completion that waits for writes that were issued
// before it.
type deferredRecv struct {
	until     uint64 // jobs.done that releases it
	cq        *CQ
	cqe       abi.CQE
	solicited bool
}

func (q *QP) submit(s *mem.Space, job mem.Job, then func()) {
	t := q.t
	t.Stats.FallbackJobs++
	q.Stats.FallbackJobs++
	job.Done = func(err error) {
		t.ended.Put(endedJob{q, then, err})
		t.wake()
	}
	s.Submit(job)
}

// FallbackEnded reports whether Settle has anything to do; one load.
func (t *Table) FallbackEnded() bool { return t.ended.Full() }

// Settle goes on with what waited for jobs that ended, and returns how many did.
func (t *Table) Settle() int {
	ended := t.ended.Take()
	for _, j := range ended {
		if j.err != nil && t.pairs[j.qp.QPN] == j.qp {
			t.log.Warn("client memory cannot be reached through /proc/self/mem",
				"client", j.qp.Client.Name, "qpn", j.qp.QPN, "error", j.err)
			j.qp.Fail(EventAccess)
		}
		j.fn()
	}
	return len(ended)
}

// readMemory reads len(buf) bytes at va of r and calls then on the worker's thread. A
// region that was deregistered is read no more. One of no memory has its turn behind
// what is read before: a Stage's chunks come in order.
func (q *QP) readMemory(r *mem.Region, va uint64, buf []byte, then func()) {
	switch {
	case r.Dead():
		q.t.ended.Put(endedJob{q, then, errRevoked})
		return
	case r.Null():
		clear(buf)
		q.submit(q.Client.Space, mem.Job{Write: true}, then)
		return
	}
	r.Hold()
	q.submit(r.Space, mem.Job{Addr: r.ClientAddr(va), Buf: buf}, func() {
		r.Release()
		then()
	})
}

var errRevoked = errors.New("qp: the memory was deregistered")

// Backlogged reports whether so much waits to be written to the client's memory
// that nothing more should come; its pages may block for ever.
func (c *Client) Backlogged() bool { return c.unwritten >= MaxUnwritten }

// storeFallback writes src to a region of the queue pair's client.
func (q *QP) storeFallback(r *mem.Region, va uint64, src []byte) {
	q.jobs.issued++
	buf := append([]byte(nil), src...)
	q.Client.unwritten += len(buf) + perWait
	q.submit(r.Space, mem.Job{Write: true, Addr: r.ClientAddr(va), Buf: buf}, func() {
		q.jobs.done++
		q.Client.unwritten -= len(buf) + perWait
		q.releaseDeferred()
	})
}

// Atomic carries an atomic operation of q's peer out at va of r, for which there
// is room and right, and returns what was there. On the fallback path done is false, later
// gets it, and receives that complete meanwhile wait for it.
func (t *Table) Atomic(q *QP, r *mem.Region, va uint64, op *mem.AtomicOp, later func(original uint64)) (original uint64, done bool) {
	if original, done = r.Atomic(va, op); done {
		return original, true
	}
	q.jobs.issued++
	buf, operation := make([]byte, mem.WordLen), *op
	q.submit(r.Space, mem.Job{Addr: r.ClientAddr(va), Buf: buf, Atomic: &operation}, func() {
		q.jobs.done++
		later(binary.NativeEndian.Uint64(buf))
		q.releaseDeferred()
	})
	return 0, false
}

// completeRecv writes a receive completion now, or after the writes before it.
func (q *QP) completeRecv(c *CQ, w *abi.CQE, solicited bool) {
	j := &q.jobs
	if j.done == j.issued && len(j.deferred) == 0 {
		q.t.complete(c, w, solicited)
		return
	}
	q.Client.unwritten += perWait
	j.deferred = append(j.deferred, deferredRecv{j.issued, c, *w, solicited})
}

func (q *QP) releaseDeferred() {
	j := &q.jobs
	for len(j.deferred) > 0 && j.deferred[0].until <= j.done {
		d := j.deferred[0]
		j.deferred = j.deferred[1:]
		q.Client.unwritten -= perWait
		q.t.complete(d.cq, &d.cqe, d.solicited)
	}
	q.t.tellLast(q)
	q.completeSends()
	if q.state == abi.QPSErr && !q.removed {
		q.t.Ready(q) // to flush what was posted meanwhile
	}
}
