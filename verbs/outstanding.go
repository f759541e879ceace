package verbs

import "sync/atomic"

// outstanding counts the requests of one queue that were posted and whose end the
// program has not polled yet. urdmad frees a slot when it completes the request,
// but a program that sizes its completion queue by its queue pairs relies on a
// full queue staying full until it polls.
type outstanding struct {
	most     uint32
	posted   uint32        // under the queue's lock
	polled   atomic.Uint32 // moved under the completion queue's lock
	failed   atomic.Bool   // then every request completes, and nothing is limited
	signaled []atomic.Bool // by position, of those in between
}

func (o *outstanding) init(most, entries uint32) {
	o.most, o.signaled = most, make([]atomic.Bool, entries)
}

func (o *outstanding) full() bool {
	return o.posted-o.polled.Load() >= o.most && !o.failed.Load()
}

func (o *outstanding) add(signaled bool) {
	o.signaled[o.posted&uint32(len(o.signaled)-1)].Store(signaled)
	o.posted++
}

// end takes a completion: that of the next signaled request, and the silent end
// of those before it.
func (o *outstanding) end(status Status) {
	if status != Success {
		o.failed.Store(true)
		return
	}
	i := o.polled.Load()
	for n := 0; n < len(o.signaled) && !o.signaled[i&uint32(len(o.signaled)-1)].Load(); n++ {
		i++
	}
	o.polled.Store(i + 1)
}
