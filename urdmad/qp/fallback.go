package qp

import (
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
}

// deferredRecv is a receive completion that waits for writes that were issued
// before it.
type deferredRecv struct {
	until     uint64 // jobs.done that releases it
	cqe       abi.CQE
	solicited bool
}

func (q *QP) submit(s *mem.Space, write bool, addr uint64, buf []byte, then func()) {
	t := q.t
	t.Stats.FallbackJobs++
	q.Stats.FallbackJobs++
	s.Submit(mem.Job{Write: write, Addr: addr, Buf: buf, Done: func(err error) {
		t.ended.Put(endedJob{q, then, err})
		t.wake()
	}})
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

// staging marks a work request as waiting for its source; landed takes the bytes,
// unless the work request has gone meanwhile.
func (q *QP) staging(wr *SendWR) (landed func(buf []byte)) {
	wr.State = SendStaging
	q.SQ.staged++
	wr.stage = q.SQ.staged
	stage := wr.stage
	return func(buf []byte) {
		if wr.State == SendStaging && wr.stage == stage {
			wr.src, wr.State = buf, SendQueued
			q.t.Ready(q)
		}
	}
}

// stageSend reads a work request's source into private memory; until then the
// send queue waits here, because sends keep their order.
func (q *QP) stageSend(i uint32, wr *SendWR) {
	landed := q.staging(wr)
	buf := make([]byte, wr.Length)
	off := uint32(0)
	left := wr.nsge
	for j := range q.SQ.list(i) {
		s := &q.SQ.list(i)[j]
		part := buf[off : off+s.n]
		off += s.n
		q.submit(s.region.Space, false, s.region.ClientAddr(s.va), part, func() {
			if left--; left == 0 {
				landed(buf)
			}
		})
	}
}

// StageSource reads the peer's source of a Read between two queue pairs of this
// urdmad into the work request.
func (q *QP) StageSource(wr *SendWR, r *mem.Region) {
	landed := q.staging(wr)
	buf := make([]byte, wr.Length)
	q.FetchRemote(r, wr.RemoteAddr, buf, func() { landed(buf) })
}

// Staged is the source of a Read that StageSource read, or nil.
func (wr *SendWR) Staged() []byte { return wr.src }

// FetchRemote reads len(buf) bytes at va of r, which is on the fallback path,
// and calls then on the worker's thread.
func (q *QP) FetchRemote(r *mem.Region, va uint64, buf []byte, then func()) {
	r.Hold()
	q.submit(r.Space, false, r.ClientAddr(va), buf, func() {
		r.Release()
		then()
	})
}

// storeFallback writes src to a region of the queue pair's client. If the region
// was deregistered meanwhile, nothing is written and the queue pair fails.
func (q *QP) storeFallback(r *mem.Region, va uint64, src []byte) {
	q.jobs.issued++
	buf := append([]byte(nil), src...)
	q.submit(r.Space, true, r.ClientAddr(va), buf, func() {
		q.jobs.done++
		q.releaseDeferred()
	})
}

// Waiting is how many writes on the fallback path have not ended.
func (q *QP) Waiting() uint64 { return q.jobs.issued - q.jobs.done }

// completeRecv writes a receive completion now, or after the writes before it.
func (q *QP) completeRecv(w *abi.CQE, solicited bool) {
	j := &q.jobs
	if j.done == j.issued && len(j.deferred) == 0 {
		q.t.complete(q.RecvCQ, w, solicited)
		return
	}
	j.deferred = append(j.deferred, deferredRecv{j.issued, *w, solicited})
}

func (q *QP) releaseDeferred() {
	j := &q.jobs
	for len(j.deferred) > 0 && j.deferred[0].until <= j.done {
		d := j.deferred[0]
		j.deferred = j.deferred[1:]
		q.t.complete(q.RecvCQ, &d.cqe, d.solicited)
	}
	q.completeSends()
}
