package qp

import (
	"errors"
	"slices"

	"urdma/urdmad/core/mem"
	"urdma/verbs/abi"
)

// This file has the jobs of the fallback path: memory that urdmad cannot map is read and written
// through the client's /proc/self/mem. For a trusted client the worker does that itself
// (mem.Space.Direct). For other clients the goroutine of the client's mem.Space does it: the poll
// loop submits jobs and handles finished ones in a later turn (fallback.go).

// endedJob is a finished job.
type endedJob struct {
	qp    *QP
	of    request
	write uint64 // number of the write; 0: the job only read
	fn    func() // continuation
	err   error
}

// request identifies the work request, or the peer's Read, that a job serves. The zero request is any
// other access of the peer to a region.
type request struct {
	send  bool       // the work request is in the send queue
	from  *RecvQueue // the queue of a receive
	index uint32     // in its queue
	read  *ReadAhead // of a peer's Read
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

// deferredRecv is a receive completion that waits for writes issued before it.
type deferredRecv struct {
	until     uint64 // written once jobs.done has reached this number
	from      *RecvQueue
	cq        *CQ
	cqe       abi.CQE
	solicited bool
	waits     *Client // the client whose memory is being written
}

// forget drops the waiting completions for which which returns true.
func (j *jobs) forget(which func(deferredRecv) bool) {
	j.deferred = slices.DeleteFunc(j.deferred, func(d deferredRecv) bool {
		drop := which(d)
		if drop {
			d.waits.unwritten -= perWait
		}
		return drop
	})
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

// FallbackEnded reports whether FinishJobs has anything to do; it costs one atomic load.
func (t *Table) FallbackEnded() bool { return len(t.unfinished) > 0 || t.ended.Full() }

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
	q.submit(r.Space, of, 0, r.Job(va, buf), func() {
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
