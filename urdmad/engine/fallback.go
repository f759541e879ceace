package engine

import (
	"urdma/urdmad/clock"
	"urdma/urdmad/mem"
	"urdma/verbs/abi"
)

// This file is the slow path: memory that urdmad cannot map is read and written
// through the client's /proc/self/mem by the goroutine of its mem.Space. The
// poll loop hands it jobs and takes up what they finished in a later turn.

// settled is a job that ended.
type settled struct {
	qp  *QP
	fn  func() // what to go on with; nil for a write
	err error
}

func (e *Engine) submit(qp *QP, s *mem.Space, write bool, addr uint64, buf []byte, then func()) {
	e.Stats.FallbackJobs++
	qp.Stats.FallbackJobs++
	s.Submit(mem.Job{Write: write, Addr: addr, Buf: buf, Done: func(err error) {
		e.settled.put(settled{qp, then, err})
		e.wake()
	}})
}

// wake gets the worker out of its sleep.
func (e *Engine) wake() {
	if e.cfg.Wake != nil {
		e.cfg.Wake()
	}
}

// stageSend reads a work request's source into private memory; until then the
// send queue waits here, because sends keep their order.
func (e *Engine) stageSend(qp *QP, i uint32, wr *sendWR) {
	wr.state = wrStaging
	qp.stages++
	wr.stage = qp.stages
	stage := wr.stage
	buf := make([]byte, wr.length)
	off := uint32(0)
	left := wr.nsge
	for j := range qp.wrSGE(i)[:wr.nsge] {
		s := &qp.wrSGE(i)[j]
		part := buf[off : off+s.n]
		off += s.n
		then := func() {
			if left--; left == 0 && wr.state == wrStaging && wr.stage == stage {
				wr.src, wr.state = buf, wrQueued
				e.runq.add(qp)
			}
		}
		e.submit(qp, s.region.Space, false, s.region.ClientAddr(s.va), part, then)
	}
}

// stageRead reads the source of a peer's Read.
func (e *Engine) stageRead(qp *QP, rr *readResponse) {
	buf := make([]byte, rr.length)
	e.submit(qp, rr.region.Space, false, rr.region.ClientAddr(rr.va), buf, func() {
		rr.src = buf
		e.runq.add(qp)
	})
}

// placeFallback writes src to a region of qp's client. A region that was
// deregistered under a receive in progress is the client's own again: nothing is
// written and the queue pair fails.
func (e *Engine) placeFallback(qp *QP, r *mem.Region, va uint64, src []byte) {
	if r.Dead() {
		e.SetTimer(clock.NewTimer(func() { e.failQP(qp, abi.EventQPAccessErr) }), e.now)
		return
	}
	qp.asyncIssued++
	buf := append([]byte(nil), src...)
	e.submit(qp, r.Space, true, r.ClientAddr(va), buf, func() {
		qp.asyncDone++
		e.releaseDeferred(qp)
	})
}

// settle goes on with what waited for jobs that ended.
func (e *Engine) settle() int {
	done := e.settled.take()
	for _, s := range done {
		if s.err != nil && e.qps[s.qp.QPN] == s.qp {
			e.log.Warn("client memory cannot be reached through /proc/self/mem",
				"client", s.qp.Client.Name, "qpn", s.qp.QPN, "error", s.err)
			e.failQP(s.qp, abi.EventQPAccessErr)
		}
		s.fn()
	}
	return len(done)
}

// deferredRecv is a receive completion that waits for writes on the fallback
// path that were issued before it.
type deferredRecv struct {
	until     uint64 // asyncDone that releases it
	cqe       abi.CQE
	solicited bool
}

// completeRecv writes a receive completion now, or after the writes before it.
func (e *Engine) completeRecv(qp *QP, w *abi.CQE, solicited bool) {
	if qp.asyncDone == qp.asyncIssued && len(qp.deferred) == 0 {
		e.complete(qp.RecvCQ, w, solicited)
		return
	}
	qp.deferred = append(qp.deferred, deferredRecv{qp.asyncIssued, *w, solicited})
}

func (e *Engine) releaseDeferred(qp *QP) {
	for len(qp.deferred) > 0 && qp.deferred[0].until <= qp.asyncDone {
		d := qp.deferred[0]
		qp.deferred = qp.deferred[1:]
		e.complete(qp.RecvCQ, &d.cqe, d.solicited)
	}
	e.completeSends(qp)
}
