package ring

import "sync/atomic"

// SetIndices sets a client's producer indices, as if that many requests had passed.
func SetIndices(c *ClientQP, at uint32) {
	for _, q := range []*clientQueue{&c.SQ.q, &c.RQ.q} {
		q.prod = at
		q.reset()
	}
}

// SetCQIndices sets both sides' indices of a completion queue.
func SetCQIndices(c *ClientCQ, s *ServerCQ, at uint32) {
	c.cons, s.prod, s.cons = at, at, at
	atomic.StoreUint32(&c.head.Prod, at)
	atomic.StoreUint32(&c.head.Cons, at)
}

// PassSilently advances the indices by n sends without completions.
func PassSilently(c *ClientQP, n uint32) {
	c.SQ.q.prod, c.SQ.q.cons = c.SQ.q.prod+n, c.SQ.q.cons+n
}
