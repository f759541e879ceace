package ring

import (
	"errors"
	"math"
	"sync/atomic"
	"unsafe"

	"urdma/verbs/abi"
)

// ErrIndex says that the index published by a client differs from urdmad's own by more than the ring's
// length.
var ErrIndex = errors.New("ring: producer index is further ahead than the ring has slots")

// ServerSQ is urdmad's side of a send queue.
type ServerSQ struct {
	head   *abi.SQRing
	slots  []byte
	mask   uint32
	stride uint32
}

// Init attaches to the queue that layout describes. An absent queue gets a private head that stays zero: an
// empty queue, which needs no special case in the data path.
func (q *ServerSQ) Init(mem []byte, l *abi.QueueLayout) {
	*q = ServerSQ{head: sqHead(mem, l), slots: slots(mem, l), mask: l.Entries - 1, stride: l.Stride}
}

// Prod loads the client's producer index; cons is urdmad's own consumer index. ErrIndex if they differ by
// more than the ring's length.
func (q *ServerSQ) Prod(cons uint32) (uint32, error) {
	p := atomic.LoadUint32(&q.head.Prod) // partner: the client's publish after writing the slot
	if p-cons > q.mask+1 {
		return cons, ErrIndex
	}
	return p, nil
}

// Prefetch loads the head of slot index and its first elements into the cache, without waiting: another core
// has just written them. Use it only for slots before Prod; a client that is still writing would lose the
// cache lines to us.
func (q *ServerSQ) Prefetch(index uint32) {
	prefetch(unsafe.Pointer(&q.slots[(index&q.mask)*q.stride]))
}

// PublishCons tells the client which sends are complete.
func (q *ServerSQ) PublishCons(cons uint32) { atomic.StoreUint32(&q.head.Cons, cons) }

// PublishFailed tells the client that sends from index first on have a completion, signaled or not. Must be
// called before the PublishCons that covers first.
func (q *ServerSQ) PublishFailed(first uint32) {
	atomic.StoreUint32(&q.head.FirstFailed, first)
	atomic.StoreUint32(&q.head.Failed, 1) // release: partner is the client's load after that of Cons
}

// ClearFailed follows a reset of the queue pair; must be called before new indices are published.
func (q *ServerSQ) ClearFailed() { atomic.StoreUint32(&q.head.Failed, 0) }

// Read copies slot index: the head into sqe and up to len(sge) elements into sge. NumSGE in sqe comes from
// the client; the caller must check it against its limit. Inline data stays in the slot, see Inline.
func (q *ServerSQ) Read(index uint32, sqe *abi.SQE, sge []abi.SGE) {
	slot := q.slots[(index&q.mask)*q.stride:]
	*sqe = *(*abi.SQE)(unsafe.Pointer(&slot[0]))
	if sqe.Flags&abi.SendInline != 0 {
		return
	}
	n := min(int(sqe.NumSGE), len(sge), int(q.stride-sqSlotHead)/sgeBytes)
	if n > 0 {
		copy(sge, unsafe.Slice((*abi.SGE)(unsafe.Pointer(&slot[sqSlotHead])), n))
	}
}

// Inline returns the first n bytes of a slot's inline data. They are in the ring, so the client may change
// them at any time. n must not exceed the slot.
func (q *ServerSQ) Inline(index, n uint32) []byte {
	at := (index&q.mask)*q.stride + sqSlotHead
	return q.slots[at : at+min(n, q.stride-sqSlotHead)]
}

// MaxInline returns the room for inline data in a slot, in bytes.
func (q *ServerSQ) MaxInline() uint32 { return max(q.stride, sqSlotHead) - sqSlotHead }

// Slots returns the number of sends that fit.
func (q *ServerSQ) Slots() int { return int(q.mask + 1) }

// ServerRQ is urdmad's side of a receive queue.
type ServerRQ struct {
	head   *abi.RQRing
	slots  []byte
	mask   uint32
	stride uint32
}

// Init attaches to the queue that layout describes, see ServerSQ.Init.
func (q *ServerRQ) Init(mem []byte, l *abi.QueueLayout) {
	*q = ServerRQ{head: rqHead(mem, l), slots: slots(mem, l), mask: l.Entries - 1, stride: l.Stride}
}

// Prod loads the client's producer index, see ServerSQ.Prod.
func (q *ServerRQ) Prod(cons uint32) (uint32, error) {
	p := atomic.LoadUint32(&q.head.Prod) // partner: the client's publish after writing the slot
	if p-cons > q.mask+1 {
		return cons, ErrIndex
	}
	return p, nil
}

// PublishCons tells the client which receives are complete.
func (q *ServerRQ) PublishCons(cons uint32) { atomic.StoreUint32(&q.head.Cons, cons) }

// Read copies slot index, see ServerSQ.Read.
func (q *ServerRQ) Read(index uint32, rqe *abi.RQE, sge []abi.SGE) {
	slot := q.slots[(index&q.mask)*q.stride:]
	*rqe = *(*abi.RQE)(unsafe.Pointer(&slot[0]))
	n := min(int(rqe.NumSGE), len(sge), int(q.stride-rqSlotHead)/sgeBytes)
	if n > 0 {
		copy(sge, unsafe.Slice((*abi.SGE)(unsafe.Pointer(&slot[rqSlotHead])), n))
	}
}

// Swap exchanges two published slots that were not taken.
func (q *ServerRQ) Swap(i, j uint32) {
	a, b := q.slots[(i&q.mask)*q.stride:][:q.stride], q.slots[(j&q.mask)*q.stride:][:q.stride]
	for k := range a {
		a[k], b[k] = b[k], a[k]
	}
}

// Copy copies the receive with an index from a queue with the same slot length, during a resize that the
// client does not see yet.
func (q *ServerRQ) Copy(from *ServerRQ, index uint32) {
	copy(q.slots[(index&q.mask)*q.stride:][:q.stride], from.slots[(index&from.mask)*from.stride:][:from.stride])
}

// Begin sets both indices of a new queue: it contains the receives from cons to prod.
func (q *ServerRQ) Begin(cons, prod uint32) {
	atomic.StoreUint32(&q.head.Prod, prod)
	q.PublishCons(cons)
}

// Slots returns the number of receives that fit.
func (q *ServerRQ) Slots() int { return int(q.mask + 1) }

// ServerQP is urdmad's side of a queue pair's queues, either of which may be absent.
type ServerQP struct {
	SQ ServerSQ
	RQ ServerRQ
}

// Init attaches to the memory that QPLayout described.
func (q *ServerQP) Init(mem []byte, r *abi.QPResponse) {
	q.SQ.Init(mem, &r.SQ)
	q.RQ.Init(mem, &r.RQ)
}

// ServerCQ is urdmad's side of a completion queue.
type ServerCQ struct {
	head    *abi.CQRing
	entries []abi.CQE
	mask    uint32
	prod    uint32 // private copy of head.Prod, which only urdmad writes
	cons    uint32 // last value loaded from the client
}

// Init attaches to the memory that CQLayout described; the queue is empty.
func (c *ServerCQ) Init(mem []byte, r *abi.CQResponse) {
	mem = mem[r.RingOffset:]
	*c = ServerCQ{
		head:    abi.At[abi.CQRing](mem, 0),
		entries: unsafe.Slice(abi.At[abi.CQE](mem, int(r.EntriesOffset)), r.Entries),
		mask:    r.Entries - 1,
	}
}

// Push writes one completion. Returns false if the queue is full or the client's consumer index is invalid;
// the completion is lost then.
func (c *ServerCQ) Push(e *abi.CQE) bool {
	if c.prod-c.cons > c.mask {
		c.cons = atomic.LoadUint32(&c.head.Cons) // partner: the client's store after it copied entries out
		if c.prod-c.cons > c.mask {
			return false
		}
	}
	c.entries[c.prod&c.mask] = *e
	c.prod++
	atomic.StoreUint32(&c.head.Prod, c.prod) // release: partner is the client's load before it reads the entry
	return true
}

// MarkOverrun tells the client that completions were lost.
func (c *ServerCQ) MarkOverrun() { atomic.StoreUint32(&c.head.Overrun, 1) }

// TakeArm reports whether the client wants an event for a completion just pushed, and if so disarms. The load
// follows Push's sequentially consistent store, and the client arms before its next poll, so one of the two
// sees the other.
func (c *ServerCQ) TakeArm(solicited bool) bool {
	arm := atomic.LoadUint32(&c.head.Arm)
	if arm == 0 || (arm == 1 && !solicited) {
		return false
	}
	atomic.StoreUint32(&c.head.Told, c.prod)
	return atomic.SwapUint32(&c.head.Arm, 0) != 0
}

// TakeMissed is TakeArm for completions from before the arming: the client has armed for any completion, has
// polled everything up to the last event, and more wait.
func (c *ServerCQ) TakeMissed() bool {
	return atomic.LoadUint32(&c.head.Arm) == 2 &&
		untold(c.prod, atomic.LoadUint32(&c.head.Cons), atomic.LoadUint32(&c.head.Told)) && c.TakeArm(false)
}

// untold reports whether all waiting completions came after the last event, and there are any; told may be
// far behind.
func untold(prod, cons, told uint32) bool { return prod != cons && prod-told >= prod-cons }

// Oldest returns the index of the oldest completion that the client has not polled, according to the client.
func (c *ServerCQ) Oldest() uint32 { return c.prod - c.Pending() }

// Since returns the number of completions from an index on.
func (c *ServerCQ) Since(first uint32) uint32 { return c.prod - first }

// Copy copies a part of the completions from an index on to a new ring, which already has those before. It is
// used during a resize, and reports whether all are copied.
func (c *ServerCQ) Copy(to *ServerCQ, first uint32, most int) (all bool) {
	for ; most > 0 && first+to.prod != c.prod; most-- {
		to.Push(&c.entries[(first+to.prod)&c.mask])
	}
	return first+to.prod == c.prod
}

// Pending returns how many completions the client has not polled yet, according to the client: 0 to Capacity.
func (c *ServerCQ) Pending() uint32 {
	return min(c.prod-atomic.LoadUint32(&c.head.Cons), c.mask+1)
}

// Capacity returns the number of completions that fit.
func (c *ServerCQ) Capacity() uint32 { return c.mask + 1 }

// Arm returns the arm word, which a resize copies to the new ring.
func (c *ServerCQ) Arm() uint32 { return atomic.LoadUint32(&c.head.Arm) }

// SetArm sets the arm word of a new ring.
func (c *ServerCQ) SetArm(v uint32) { atomic.StoreUint32(&c.head.Arm, v) }

// Succeed copies the arming and the overrun flag from the ring that this one replaces.
func (c *ServerCQ) Succeed(old *ServerCQ) {
	c.SetArm(old.Arm())
	waiting, untold := old.prod-atomic.LoadUint32(&old.head.Cons), old.prod-atomic.LoadUint32(&old.head.Told)
	if waiting > untold {
		atomic.StoreUint32(&c.head.Told, waiting-untold) // the new ring begins with the waiting completions
	}
	if atomic.LoadUint32(&old.head.Overrun) != 0 {
		c.MarkOverrun()
	}
}

// ServerBells is urdmad's side of one client's doorbells for one worker.
type ServerBells struct{ d *abi.Doorbells }

// Init attaches to section worker of the doorbell memory.
func (b *ServerBells) Init(mem []byte, worker int) {
	b.d = abi.At[abi.Doorbells](mem, worker*abi.Size[abi.Doorbells]())
}

// Summary returns and clears the set of words with bits; usually it is 0, which costs one load.
func (b *ServerBells) Summary() uint64 {
	if atomic.LoadUint64(&b.d.Summary) == 0 {
		return 0
	}
	return atomic.SwapUint64(&b.d.Summary, 0) // partner: the client's or after it set its bit
}

// Word returns and clears the bits of one word.
func (b *ServerBells) Word(i int) uint64 { return atomic.SwapUint64(&b.d.Bits[i&63], 0) }

// Rung reports whether any doorbell has rung, without clearing it.
func (b *ServerBells) Rung() bool { return atomic.LoadUint64(&b.d.Summary) != 0 }

// SetSleeping tells the client that the worker is about to block, or no longer blocks.
func (b *ServerBells) SetSleeping(v bool) {
	var n uint32
	if v {
		n = 1
	}
	atomic.StoreUint32(&b.d.Sleeping, n) // partner: the client's load after ringing
}

// SetYield tells the client when to yield its core, and the minimum duration in ns of a yield in which
// another thread runs.
func (b *ServerBells) SetYield(post, poll, alone uint32) {
	atomic.StoreUint32(&b.d.YieldPost, post)
	atomic.StoreUint32(&b.d.YieldPoll, poll)
	atomic.StoreUint32(&b.d.YieldAlone, alone)
}

// SetCore tells the client which CPU the worker runs on.
func (b *ServerBells) SetCore(cpu uint32) { atomic.StoreUint32(&b.d.Core, cpu) }

// PollsOn reports whether the client has polled an empty queue on this CPU since the last call, without
// waiting for us. The call resets the report: a client that still polls reports again at
// once, and one that no longer polls is found only once.
func (b *ServerBells) PollsOn(cpu uint32) bool {
	return atomic.LoadUint32(&b.d.Poller) == cpu+1 && atomic.LoadUint32(&b.d.Waits) == 0 &&
		atomic.CompareAndSwapUint32(&b.d.Poller, cpu+1, 0)
}

// WakeWaiting wakes a client that waits for a completion which was published before; if none waits, it costs
// a load.
func (b *ServerBells) WakeWaiting() {
	if atomic.LoadUint32(&b.d.Waits) != 0 && atomic.SwapUint32(&b.d.Waits, 0) != 0 {
		futex(&b.d.Waits, futexWake, math.MaxInt32, nil)
	}
}
