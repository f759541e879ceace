package qp

// runQueue is a FIFO of the queue pairs that may have something to send.
type runQueue struct {
	q    []*QP
	head int
}

func (r *runQueue) len() int { return len(r.q) - r.head }

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

func (r *runQueue) remove(q *QP) {
	if !q.inRun {
		return
	}
	for i := r.head; i < len(r.q); i++ {
		if r.q[i] == q {
			r.q = append(r.q[:i], r.q[i+1:]...)
			break
		}
	}
	q.inRun = false
}
