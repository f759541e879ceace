package engine

// runQueue holds the queue pairs that may have something to send, first come
// first served.
type runQueue struct {
	q    []*QP
	head int
}

func (r *runQueue) len() int { return len(r.q) - r.head }

func (r *runQueue) add(qp *QP) {
	if qp == nil || qp.inRun {
		return
	}
	qp.inRun = true
	r.q = append(r.q, qp)
}

func (r *runQueue) take() *QP {
	qp := r.q[r.head]
	r.q[r.head] = nil
	if r.head++; r.head == len(r.q) {
		r.q, r.head = r.q[:0], 0
	} else if r.head >= 1024 {
		n := copy(r.q, r.q[r.head:])
		clear(r.q[n:])
		r.q, r.head = r.q[:n], 0
	}
	qp.inRun = false
	return qp
}

func (r *runQueue) remove(qp *QP) {
	if !qp.inRun {
		return
	}
	for i := r.head; i < len(r.q); i++ {
		if r.q[i] == qp {
			r.q = append(r.q[:i], r.q[i+1:]...)
			break
		}
	}
	qp.inRun = false
}
