package ring

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// ClientSQ is a client's side of a send queue, for one goroutine at a time.
//
// A slot is written with Write or WriteInline and stays private until the next
// Publish; several slots may share one. It is free again once Polled was given
// its completion or a later one of its queue, or urdmad completed it without one.
type ClientSQ struct {
	q         clientQueue
	maxInline uint32
}

// Init attaches to the queue that layout describes, empty; cap and sigAll are
// what CREATE_QP said.
func (s *ClientSQ) Init(mem []byte, l *abi.QueueLayout, cap *abi.QPCap, sigAll bool) {
	h := sqHead(mem, l)
	s.maxInline = cap.MaxInline
	s.q = clientQueue{mem: slots(mem, l), stride: l.Stride, mask: l.Entries - 1, depth: cap.MaxSendWR, maxSGE: cap.MaxSendSGE,
		all: sigAll, failing: h, published: &h.Prod, done: &h.Cons}
}

// MaxSGE is how many scatter/gather elements a work request may have.
func (s *ClientSQ) MaxSGE() int { return int(s.q.maxSGE) }

// MaxInline is how many bytes of inline data a work request may have.
func (s *ClientSQ) MaxInline() int { return int(s.maxInline) }

// Free is how many slots can be written now.
func (s *ClientSQ) Free() int { return s.q.free() }

// Write writes a work request; NumSGE is taken from sge. False means that the
// queue is full or the list longer than MaxSGE.
func (s *ClientSQ) Write(w *abi.SQE, sge []abi.SGE) bool {
	if len(sge) > s.MaxSGE() {
		return false
	}
	slot := s.q.reserve()
	if slot == nil {
		return false
	}
	head := (*abi.SQE)(unsafe.Pointer(&slot[0]))
	*head = *w
	head.NumSGE = uint32(len(sge))
	putSGE(slot[sqSlotHead:], sge)
	s.q.prod++
	return true
}

// WriteInline writes a work request that carries its data itself: the pieces one
// after the other. InlineLength and the flag are set here. False means that the
// queue is full or the data longer than MaxInline.
func (s *ClientSQ) WriteInline(w *abi.SQE, pieces ...[]byte) bool {
	total := 0
	for _, p := range pieces {
		total += len(p)
	}
	if total > s.MaxInline() {
		return false
	}
	slot := s.q.reserve()
	if slot == nil {
		return false
	}
	head := (*abi.SQE)(unsafe.Pointer(&slot[0]))
	*head = *w
	head.Flags |= abi.SendInline
	head.NumSGE, head.InlineLength = 0, uint32(total)
	at := sqSlotHead
	for _, p := range pieces {
		at += copy(slot[at:], p)
	}
	s.q.prod++
	return true
}

// Publish makes the slots written so far visible to urdmad; ring the queue pair's
// doorbell afterwards.
func (s *ClientSQ) Publish() { s.q.publish() }

// Lost takes the oldest work request that lacks a completion that urdmad, which
// has ended, owed it. The completion queue must have been emptied.
func (s *ClientSQ) Lost() (id uint64, opcode uint32, ok bool) { return s.q.lost() }

// ClientRQ is a client's side of a receive queue, for one goroutine at a time. A
// slot is private and free as one of ClientSQ is.
type ClientRQ struct{ q clientQueue }

// Init attaches to the queue that layout describes, empty; cap is what CREATE_QP
// said.
func (r *ClientRQ) Init(mem []byte, l *abi.QueueLayout, cap *abi.QPCap) {
	h := rqHead(mem, l)
	r.q = clientQueue{mem: slots(mem, l), stride: l.Stride, mask: l.Entries - 1, depth: cap.MaxRecvWR, maxSGE: cap.MaxRecvSGE,
		all: true, published: &h.Prod, done: &h.Cons}
}

// MaxSGE is how many scatter/gather elements a receive may have.
func (r *ClientRQ) MaxSGE() int { return int(r.q.maxSGE) }

// Free is how many slots can be written now.
func (r *ClientRQ) Free() int { return r.q.free() }

// Write writes a receive work request, as ClientSQ's does.
func (r *ClientRQ) Write(id uint64, sge []abi.SGE) bool {
	if len(sge) > r.MaxSGE() {
		return false
	}
	slot := r.q.reserve()
	if slot == nil {
		return false
	}
	*(*abi.RQE)(unsafe.Pointer(&slot[0])) = abi.RQE{WRID: id, NumSGE: uint32(len(sge))}
	putSGE(slot[rqSlotHead:], sge)
	r.q.prod++
	return true
}

// Publish is ClientSQ's for receives.
func (r *ClientRQ) Publish() { r.q.publish() }

// Lost is ClientSQ's for receives.
func (r *ClientRQ) Lost() (id uint64, ok bool) {
	id, _, ok = r.q.lost()
	return id, ok
}

// Left is how many receives were posted whose completion was not polled.
func (r *ClientRQ) Left() int { return int(r.q.prod - r.q.unpolled()) }

// ClientSRQ is a client's side of a shared receive queue, for one goroutine at a
// time. A slot is free once urdmad has taken its receive (urdma_abi.h).
type ClientSRQ struct{ q clientQueue }

// Init attaches to the queue that layout describes, empty.
func (r *ClientSRQ) Init(mem []byte, l *abi.SRQResponse) {
	h := rqHead(mem, &l.RQ)
	r.q = clientQueue{mem: slots(mem, &l.RQ), stride: l.RQ.Stride, mask: l.RQ.Entries - 1, depth: l.MaxWR, maxSGE: l.MaxSGE,
		published: &h.Prod, done: &h.Cons}
}

// Move attaches to the queue that takes this one's place after a resize: its
// receives are there, with their indices. Nothing may be written and not published.
func (r *ClientSRQ) Move(mem []byte, l *abi.SRQResponse) {
	prod := r.q.prod
	r.Init(mem, l)
	r.q.prod = prod
}

// Write writes a receive work request. False means that the queue is full or the
// list longer than it may be.
func (r *ClientSRQ) Write(id uint64, sge []abi.SGE) bool {
	q := &r.q
	taken := atomic.LoadUint32(q.done) // partner: urdmad's publish after it copied the slot
	if len(sge) > int(q.maxSGE) || q.prod-taken >= q.depth {
		return false
	}
	slot := q.slot(q.prod)
	*(*abi.RQE)(unsafe.Pointer(&slot[0])) = abi.RQE{WRID: id, NumSGE: uint32(len(sge))}
	putSGE(slot[rqSlotHead:], sge)
	q.prod++
	return true
}

// Publish makes the slots written so far visible to urdmad.
func (r *ClientSRQ) Publish() { r.q.publish() }

// ClientQP is a client's side of a queue pair's queues, either of which may be
// absent: it is full then. They are independent: each may be used by a goroutine
// of its own.
type ClientQP struct {
	SQ ClientSQ
	RQ ClientRQ
}

// Init attaches to the memory that the response to CREATE_QP describes, with
// empty queues. sigAll is what CREATE_QP said.
func (q *ClientQP) Init(mem []byte, r *abi.QPResponse, sigAll bool) {
	q.SQ.Init(mem, &r.SQ, &r.Cap, sigAll)
	q.RQ.Init(mem, &r.RQ, &r.Cap)
}

func (q *ClientQP) of(e *abi.CQE) *clientQueue {
	if e.Opcode&abi.WCRecv != 0 {
		return &q.RQ.q
	}
	return &q.SQ.q
}

// Polled notes that a completion of this queue pair was polled. It, WasLost and
// the queues' Lost belong to the polling thread; posting goes on meanwhile.
func (q *ClientQP) Polled(e *abi.CQE) {
	atomic.StoreUint32(&q.of(e).polled, e.Index+1) // partner: the load when the queue looks full
}

// WasLost reports whether a queue's Lost has made up the completion of the same
// work request before.
func (q *ClientQP) WasLost(e *abi.CQE) bool { return q.of(e).stale(e.Index) }

// Reset follows urdmad's move to RESET: nothing is posted, and the completions of
// what was are not to be polled any more.
func (q *ClientQP) Reset() {
	q.SQ.q.reset()
	q.RQ.q.reset()
}

func putSGE(slot []byte, sge []abi.SGE) {
	if len(sge) > 0 {
		copy(unsafe.Slice((*abi.SGE)(unsafe.Pointer(&slot[0])), len(sge)), sge)
	}
}

// ClientCQ is a client's side of a completion queue, for one goroutine at a
// time.
type ClientCQ struct {
	head    *abi.CQRing
	entries []abi.CQE
	mask    uint32
	cons    uint32 // private copy of head.Cons, which only the client writes
}

// Init attaches to the memory that the response to CREATE_CQ or RESIZE_CQ
// describes; urdmad numbers the completions of a new ring from 0.
func (c *ClientCQ) Init(mem []byte, r *abi.CQResponse) {
	*c = ClientCQ{
		head:    abi.At[abi.CQRing](mem, 0),
		entries: unsafe.Slice(abi.At[abi.CQE](mem, int(r.EntriesOffset)), r.Entries),
		mask:    r.Entries - 1,
	}
}

// Poll copies up to len(out) completions, oldest first, and returns how many.
func (c *ClientCQ) Poll(out []abi.CQE) int {
	prod := atomic.LoadUint32(&c.head.Prod) // partner: urdmad's store after it wrote the entry
	n := min(int(prod-c.cons), len(out))
	if n == 0 {
		return 0
	}
	for i := range out[:n] {
		out[i] = c.entries[(c.cons+uint32(i))&c.mask]
	}
	c.cons += uint32(n)
	atomic.StoreUint32(&c.head.Cons, c.cons) // release: partner is urdmad's load before it overwrites entries
	return n
}

// Values of the arm word.
const (
	armSolicited = 1
	armAny       = 2
)

// Empty reports that there is nothing to Poll.
func (c *ClientCQ) Empty() bool { return atomic.LoadUint32(&c.head.Prod) == c.cons }

// Arm asks for one event on the completion channel: for the next completion,
// or with solicitedOnly for the next solicited or failed one. Completions that
// are there already cause none, so poll once more after arming.
func (c *ClientCQ) Arm(solicitedOnly bool) {
	if !solicitedOnly {
		atomic.StoreUint32(&c.head.Arm, armAny) // partner: urdmad's load after it published a completion
		return
	}
	atomic.CompareAndSwapUint32(&c.head.Arm, 0, armSolicited) // armed for any stays so
}

// Overrun reports that completions were lost because the queue was full.
func (c *ClientCQ) Overrun() bool { return atomic.LoadUint32(&c.head.Overrun) != 0 }

// Entries is how many completions fit.
func (c *ClientCQ) Entries() int { return len(c.entries) }

// ClientBells is a client's side of its doorbells for one worker. Any goroutine
// may ring.
type ClientBells struct{ d *abi.Doorbells }

// Init attaches to section worker of the doorbell memory.
func (b *ClientBells) Init(mem []byte, worker int) {
	b.d = abi.At[abi.Doorbells](mem, worker*abi.Size[abi.Doorbells]())
}

// Ring rings doorbell n after a publish. kick means that the worker sleeps and
// it falls to the caller to send a byte on the kick socket.
//
// The bit goes before the summary's, which urdmad takes first; both before the
// load of sleeping, as urdmad's store of it precedes its last look at summary:
// one side sees the other. Bits that are still set need not be set again: urdmad's
// swap of them is still to come, and its look at the index after that. (The store
// that published the index is sequentially consistent in Go.)
func (b *ClientBells) Ring(n int) (kick bool) {
	w, bit := n>>6&63, uint64(1)<<(n&63)
	if atomic.LoadUint64(&b.d.Bits[w])&bit == 0 || atomic.LoadUint64(&b.d.Summary)&(1<<w) == 0 {
		atomic.OrUint64(&b.d.Bits[w], bit)
		atomic.OrUint64(&b.d.Summary, 1<<w)
	}
	return atomic.LoadUint32(&b.d.Sleeping) != 0 && atomic.SwapUint32(&b.d.Sleeping, 0) != 0
}

// Yield returns when a client should give its core away (post: after the first
// post since a poll; poll: after this many empty polls in a row), the CPU that
// the worker runs on, and the ns that a yield takes at least which lets somebody
// else run, 0 if urdmad doesn't say.
func (b *ClientBells) Yield() (post, poll, core, alone uint32) {
	return atomic.LoadUint32(&b.d.YieldPost), atomic.LoadUint32(&b.d.YieldPoll), atomic.LoadUint32(&b.d.Core),
		atomic.LoadUint32(&b.d.YieldAlone)
}

// Polls says on which CPU the caller polls an empty queue, and reports whether
// the worker, awake, has only the same.
func (b *ClientBells) Polls(cpu uint32) (shared bool) {
	if atomic.LoadUint32(&b.d.Poller) != cpu+1 {
		atomic.StoreUint32(&b.d.Poller, cpu+1)
	}
	return atomic.LoadUint32(&b.d.Core) == cpu && atomic.LoadUint32(&b.d.Sleeping) == 0
}

// Found says that the caller's queue is not empty, so what it does now is its own.
func (b *ClientBells) Found() {
	if atomic.LoadUint32(&b.d.Poller) != 0 {
		atomic.StoreUint32(&b.d.Poller, 0)
	}
}

// Announce says that the caller is about to Wait, or that it isn't. After the
// first it must look at its queue once more.
func (b *ClientBells) Announce(wait bool) {
	var n uint32
	if wait {
		n = 1
	}
	atomic.StoreUint32(&b.d.Waits, n) // partner: urdmad's load after it published a completion
}

// Announced reports whether the announcement stands.
func (b *ClientBells) Announced() bool { return atomic.LoadUint32(&b.d.Waits) != 0 }

// Wait blocks until urdmad has completed something, at most for longest. Unlike
// all else here it may come after the memory was unmapped, and returns at once
// then, or looks at whatever lies there now. A thread that isn't woken leaves the
// announcement standing, which costs urdmad a system call at its next completion.
func (b *ClientBells) Wait(longest time.Duration) {
	t := unix.NsecToTimespec(longest.Nanoseconds())
	futex(&b.d.Waits, futexWait, 1, &t)
}
