package qp

import "slices"

// runQueue is a FIFO of the queue pairs that may have something to send.
type runQueue struct {
	q      []*QP
	head   int
	passed []*QP // passed over in this turn, see passOver
}

func (r *runQueue) len() int { return len(r.q) - r.head + len(r.passed) }

func (r *runQueue) add(q *QP) {
	if q == nil || q.inRun {
		return
	}
	q.inRun = true
	r.q = append(r.q, q)
}

func (r *runQueue) take() *QP {
	q := r.q[r.head]
	r.q[r.head] = nil
	if r.head++; r.head == len(r.q) {
		r.q, r.head = r.q[:0], 0
	} else if r.head >= 1024 {
		n := copy(r.q, r.q[r.head:])
		clear(r.q[n:])
		r.q, r.head = r.q[:n], 0
	}
	q.inRun = false
	return q
}

// passOver keeps a queue pair that was taken but may not be served in this turn; see readmit.
func (r *runQueue) passOver(q *QP) {
	q.inRun = true
	r.passed = append(r.passed, q)
}

// readmit puts the queue pairs that were passed over back in line behind the first n. Those that were served and
// have more to send got in line meanwhile and are behind: otherwise they would be served again and again.
func (r *runQueue) readmit(n int) {
	if len(r.passed) > 0 {
		r.q = slices.Insert(r.q, r.head+n, r.passed...)
		clear(r.passed)
		r.passed = r.passed[:0]
	}
}

func (r *runQueue) remove(q *QP) {
	if !q.inRun {
		return
	}
	r.readmit(0)
	at := r.head + slices.Index(r.q[r.head:], q)
	r.q = slices.Delete(r.q, at, at+1)
	q.inRun = false
}
