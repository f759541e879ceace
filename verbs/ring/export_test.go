package ring

import "sync/atomic"

// SetIndices puts a client's producer indices, as if that many requests had
// passed.
func SetIndices(c *ClientQP, at uint32) {
	c.sq.prod, c.sq.cons, c.rq.prod, c.rq.cons = at, at, at, at
}

// SetCQIndices does so with both sides of a completion queue.
func SetCQIndices(c *ClientCQ, s *ServerCQ, at uint32) {
	c.cons, s.prod, s.cons = at, at, at
	atomic.StoreUint32(&c.head.Prod, at)
	atomic.StoreUint32(&c.head.Cons, at)
}
