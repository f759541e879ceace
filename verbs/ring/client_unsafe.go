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
// Write and WriteInline write a slot, which urdmad sees after the next Publish; one Publish may cover several
// slots. A slot is free again once Polled was called with its completion or a later one of the queue, or
// urdmad completed it without a completion.
type ClientSQ struct {
	q         clientQueue
	maxInline uint32
}

// Init attaches to the empty queue that layout describes; cap and sigAll are as in CREATE_QP.
func (s *ClientSQ) Init(mem []byte, l *abi.QueueLayout, cap *abi.QPCap, sigAll bool) {
	h := sqHead(mem, l)
	s.maxInline = cap.MaxInline
	s.q = clientQueue{mem: slots(mem, l), stride: l.Stride, mask: l.Entries - 1, depth: cap.MaxSendWR,
		maxSGE: cap.MaxSendSGE,
		all:    sigAll, failing: h, published: &h.Prod, done: &h.Cons}
}

// MaxSGE returns how many scatter/gather elements a work request may have.
func (s *ClientSQ) MaxSGE() int { return int(s.q.maxSGE) }

// MaxInline returns how many bytes of inline data a work request may have.
func (s *ClientSQ) MaxInline() int { return int(s.maxInline) }

// Free returns how many slots can be written now.
func (s *ClientSQ) Free() int { return s.q.free() }

// Write writes a work request; NumSGE is set from sge. Returns false if the queue is full or sge longer than
// MaxSGE.
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

// WriteInline writes a work request with inline data, the concatenation of the pieces. It sets InlineLength
// and the flag. Returns false if the queue is full or the data longer than MaxInline.
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

// Lost takes the oldest work request that was outstanding when urdmad ended. The completion queue must be
// empty.
func (s *ClientSQ) Lost() (id uint64, opcode uint32, ok bool) { return s.q.lost() }

// ClientRQ is a client's side of a receive queue, for one goroutine at a time. Slots are published and freed
// as those of ClientSQ.
type ClientRQ struct{ q clientQueue }

// Init attaches to the empty queue that layout describes; cap is as in CREATE_QP.
func (r *ClientRQ) Init(mem []byte, l *abi.QueueLayout, cap *abi.QPCap) {
	h := rqHead(mem, l)
	r.q = clientQueue{mem: slots(mem, l), stride: l.Stride, mask: l.Entries - 1, depth: cap.MaxRecvWR,
		maxSGE: cap.MaxRecvSGE,
		all:    true, published: &h.Prod, done: &h.Cons}
}

// MaxSGE returns how many scatter/gather elements a receive may have.
func (r *ClientRQ) MaxSGE() int { return int(r.q.maxSGE) }

// Free returns how many slots can be written now.
func (r *ClientRQ) Free() int { return r.q.free() }

// Write writes a receive work request; see ClientSQ.Write.
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

// Publish makes the slots written visible to urdmad; no doorbell is needed.
func (r *ClientRQ) Publish() { r.q.publish() }

// Lost takes the oldest receive that was outstanding when urdmad ended.
func (r *ClientRQ) Lost() (id uint64, ok bool) {
	id, _, ok = r.q.lost()
	return id, ok
}

// Left returns how many posted receives have no polled completion yet.
func (r *ClientRQ) Left() int { return int(r.q.prod - r.q.unpolled()) }

// ClientSRQ is a client's side of a shared receive queue, for one goroutine at a time. A slot is free once
// urdmad has taken its receive (urdma_abi.h).
type ClientSRQ struct{ q clientQueue }

// Init attaches to the empty queue that layout describes.
func (r *ClientSRQ) Init(mem []byte, l *abi.SRQResponse) {
	h := rqHead(mem, &l.RQ)
	r.q = clientQueue{mem: slots(mem, &l.RQ), stride: l.RQ.Stride, mask: l.RQ.Entries - 1, depth: l.MaxWR,
		maxSGE:    l.MaxSGE,
		published: &h.Prod, done: &h.Cons}
}

// Move attaches to the queue that replaces this one after a resize; it contains this one's receives with the
// same indices. There must be no unpublished slots.
func (r *ClientSRQ) Move(mem []byte, l *abi.SRQResponse) {
	prod := r.q.prod
	r.Init(mem, l)
	r.q.prod = prod
}

// Write writes a receive work request. Returns false if the queue is full or the list too long.
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

// ClientQP is a client's side of a queue pair's queues. An absent queue behaves as if full. The two queues
// are independent: each may be used by a goroutine of its own.
type ClientQP struct {
	SQ ClientSQ
	RQ ClientRQ
}

// Init attaches to the memory that the response to CREATE_QP describes, with empty queues. sigAll is as in
// CREATE_QP.
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

// Polled records that a completion of this queue pair was polled. Polled, WasLost and the queues' Lost must
// be called by the polling thread; another thread may post meanwhile.
func (q *ClientQP) Polled(e *abi.CQE) {
	atomic.StoreUint32(&q.of(e).polled, e.Index+1) // partner: the load when the queue looks full
}

// WasLost reports whether Lost of the queue has already returned the same work request.
func (q *ClientQP) WasLost(e *abi.CQE) bool { return q.of(e).stale(e.Index) }

// Reset follows urdmad's move of the queue pair to RESET: the queues are empty, and completions of earlier
// work must not be polled.
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

// Init attaches to the memory that the response to CREATE_CQ or RESIZE_CQ describes; the first completion in
// a new ring has index 0.
func (c *ClientCQ) Init(mem []byte, r *abi.CQResponse) {
	*c = ClientCQ{
		head:    abi.At[abi.CQRing](mem, 0),
		entries: unsafe.Slice(abi.At[abi.CQE](mem, int(r.EntriesOffset)), r.Entries),
		mask:    r.Entries - 1,
	}
}

// Poll copies up to len(out) completions, oldest first, and returns their number.
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

// Empty reports whether there are no completions to Poll.
func (c *ClientCQ) Empty() bool { return atomic.LoadUint32(&c.head.Prod) == c.cons }

// Arm requests one event on the completion channel: for the next completion or, with solicitedOnly, for the
// next solicited or failed one. Existing completions cause no event, so poll once more after arming.
func (c *ClientCQ) Arm(solicitedOnly bool) {
	if !solicitedOnly {
		atomic.StoreUint32(&c.head.Arm, armAny) // partner: urdmad's load after it published a completion
		return
	}
	atomic.CompareAndSwapUint32(&c.head.Arm, 0, armSolicited) // a queue armed for any completion stays so
}

// Overrun reports that completions were lost because the queue was full.
func (c *ClientCQ) Overrun() bool { return atomic.LoadUint32(&c.head.Overrun) != 0 }

// Entries returns the number of completions that fit.
func (c *ClientCQ) Entries() int { return len(c.entries) }

// ClientBells is a client's side of its doorbells for one worker. Any goroutine may call Ring.
type ClientBells struct{ d *abi.Doorbells }

// Init attaches to the section of a worker in the doorbell memory.
func (b *ClientBells) Init(mem []byte, worker int) {
	b.d = abi.At[abi.Doorbells](mem, worker*abi.Size[abi.Doorbells]())
}

// Ring rings doorbell n after a publish. If kick is true the worker sleeps, and the caller must send a byte
// on the kick socket.
//
// The bit is set before the summary, which urdmad exchanges first; both before sleeping is loaded. urdmad
// stores sleeping before its last look at the summary, so one side sees the other. Bits that are still set
// need not be set again: urdmad has not yet exchanged them and will look at the index after that. (The store
// that published the index is sequentially consistent in Go.)
func (b *ClientBells) Ring(n int) (kick bool) {
	w, bit := n>>6&63, uint64(1)<<(n&63)
	if atomic.LoadUint64(&b.d.Bits[w])&bit == 0 || atomic.LoadUint64(&b.d.Summary)&(1<<w) == 0 {
		atomic.OrUint64(&b.d.Bits[w], bit)
		atomic.OrUint64(&b.d.Summary, 1<<w)
	}
	return atomic.LoadUint32(&b.d.Sleeping) != 0 && atomic.SwapUint32(&b.d.Sleeping, 0) != 0
}

// Yield returns when a client should yield its core (post: after the first post since a poll; poll: after
// this many empty polls in a row), the CPU on which the worker runs, and the minimum duration in ns of a
// yield in which another thread runs; 0 if urdmad states none.
func (b *ClientBells) Yield() (post, poll, core, alone uint32) {
	return atomic.LoadUint32(&b.d.YieldPost), atomic.LoadUint32(&b.d.YieldPoll), atomic.LoadUint32(&b.d.Core),
		atomic.LoadUint32(&b.d.YieldAlone)
}

// Polls records the CPU on which the caller polls an empty queue, and reports whether the worker is awake and
// can only run on the same CPU.
func (b *ClientBells) Polls(cpu uint32) (shared bool) {
	if atomic.LoadUint32(&b.d.Poller) != cpu+1 {
		atomic.StoreUint32(&b.d.Poller, cpu+1)
	}
	return atomic.LoadUint32(&b.d.Core) == cpu && atomic.LoadUint32(&b.d.Sleeping) == 0
}

// Found records that the caller's queue is not empty, so the caller has work to do.
func (b *ClientBells) Found() {
	if atomic.LoadUint32(&b.d.Poller) != 0 {
		atomic.StoreUint32(&b.d.Poller, 0)
	}
}

// Announce tells urdmad that the caller is about to Wait, or no longer is. After Announce(true) the caller
// must look at its queue once more.
func (b *ClientBells) Announce(wait bool) {
	var n uint32
	if wait {
		n = 1
	}
	atomic.StoreUint32(&b.d.Waits, n) // partner: urdmad's load after it published a completion
}

// Announced reports whether the announcement is still set.
func (b *ClientBells) Announced() bool { return atomic.LoadUint32(&b.d.Waits) != 0 }

// Wait blocks until urdmad has completed something, at most for longest. Unlike the other methods it may be
// called after the memory was unmapped; then it returns at once, or looks at other data that is mapped there
// by now. If urdmad does not wake it, the announcement stays set, which costs urdmad a system call at its
// next completion.
func (b *ClientBells) Wait(longest time.Duration) {
	t := unix.NsecToTimespec(longest.Nanoseconds())
	futex(&b.d.Waits, futexWait, 1, &t)
}
