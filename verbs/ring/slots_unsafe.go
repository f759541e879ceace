package ring

import (
	"sync/atomic"
	"unsafe"

	"urdma/verbs/abi"
)

// clientQueue is a client's side of a send or receive queue. The posting thread owns all fields except
// polled, which the polling thread writes. Indices wrap around and are compared by their difference.
type clientQueue struct {
	mem    []byte // the slots
	stride uint32
	maxSGE uint32
	mask   uint32
	depth  uint32 // maximum number of slots in use
	all    bool   // every work request has a completion

	failing   *abi.SQRing // send queue: where urdmad records the first failed request
	published *uint32     // our index, as urdmad sees it
	done      *uint32     // urdmad's index: one past the last work request completed

	prod uint32 // one past the last slot written, published or not
	cons uint32 // first slot in use; also read by the polling thread
	seen uint32 // the value of polled that is included in cons; also read by the polling thread

	polled uint32 // one past the newest work request whose completion was polled
	losing bool   // lost has taken some requests
}

// reserve returns the next free slot, or nil.
func (c *clientQueue) reserve() []byte {
	if c.prod-c.cons >= c.depth && !c.reclaim() {
		return nil
	}
	return c.slot(c.prod)
}

func (c *clientQueue) slot(index uint32) []byte {
	at := (index & c.mask) * c.stride
	return c.mem[at : at+c.stride]
}

func (c *clientQueue) free() int {
	c.takePolled()
	c.takeSilent()
	return int(c.depth - (c.prod - c.cons))
}

// reclaim frees slots and reports whether there are free ones.
func (c *clientQueue) reclaim() bool {
	c.takePolled()
	if c.prod-c.cons >= c.depth {
		c.takeSilent()
	}
	return c.prod-c.cons < c.depth
}

// takePolled frees the slots of all work requests up to the newest whose completion was polled. A polling thread
// that loads an old value of seen may load a cons that is newer than it.
func (c *clientQueue) takePolled() {
	p := atomic.LoadUint32(&c.polled)
	if p == c.seen {
		return
	}
	if p-c.cons <= c.prod-c.cons {
		atomic.StoreUint32(&c.cons, p)
	}
	atomic.StoreUint32(&c.seen, p) // after cons: partner is the load in unpolled
}

// takeSilent frees the oldest slots whose sends urdmad completed without a completion.
func (c *clientQueue) takeSilent() {
	if c.all {
		return
	}
	done, cons := atomic.LoadUint32(c.done), c.cons // partner: urdmad's publish after it has finished with the slot
	if done-cons > c.prod-cons {
		return
	}
	for cons != done && c.silent(cons) {
		cons++
	}
	atomic.StoreUint32(&c.cons, cons)
}

// silent reports whether a send that urdmad has carried out made no completion.
func (c *clientQueue) silent(index uint32) bool {
	if (*abi.SQE)(unsafe.Pointer(&c.slot(index)[0])).Flags&abi.SendSignaled != 0 {
		return false
	}
	return atomic.LoadUint32(&c.failing.Failed) == 0 || int32(index-atomic.LoadUint32(&c.failing.FirstFailed)) < 0
}

// unpolled returns the oldest work request whose completion was not polled, as seen by threads other than the
// posting one.
func (c *clientQueue) unpolled() uint32 {
	seen := atomic.LoadUint32(&c.seen)
	if p := atomic.LoadUint32(&c.polled); p != seen {
		return p
	}
	return atomic.LoadUint32(&c.cons)
}

// lost takes the oldest work request that was outstanding when urdmad ended: its ID and, for a send, its
// opcode. Only published requests count; one that is being posted is found next time.
func (c *clientQueue) lost() (id uint64, opcode uint32, ok bool) {
	prod, done := atomic.LoadUint32(c.published), atomic.LoadUint32(c.done)
	at := c.unpolled()
	if c.losing {
		at = atomic.LoadUint32(&c.polled)
	}
	for ; int32(prod-at) > 0; at++ {
		if int32(done-at) > 0 && !c.all && c.silent(at) {
			continue
		}
		head := (*abi.SQE)(unsafe.Pointer(&c.slot(at)[0])) // a receive's slot also begins with its ID
		id, opcode = head.WRID, head.Opcode
		if int32(atomic.LoadUint32(&c.cons)-at) > 0 {
			continue // freed, and perhaps reused, meanwhile
		}
		atomic.StoreUint32(&c.polled, at+1)
		c.losing = true
		return id, opcode, true
	}
	return 0, 0, false
}

// stale reports whether lost has already taken index. Meaningful only after urdmad's end.
func (c *clientQueue) stale(index uint32) bool {
	return atomic.LoadUint32(&c.polled)-1-index < c.depth
}

// publish makes everything up to prod visible to urdmad.
func (c *clientQueue) publish() {
	atomic.StoreUint32(c.published, c.prod) // release: partner is urdmad's load before it copies slots
}

// reset discards all posted requests.
func (c *clientQueue) reset() {
	atomic.StoreUint32(&c.polled, c.prod)
	atomic.StoreUint32(&c.cons, c.prod)
	atomic.StoreUint32(&c.seen, c.prod)
}
