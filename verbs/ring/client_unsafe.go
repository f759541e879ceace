package ring

import (
	"sync/atomic"
	"unsafe"

	"urdma/verbs/abi"
)

// ClientQP is a client's side of a queue pair's rings. The send half and the
// receive half are independent: each may be used by one goroutine at a time.
//
// A slot is written with WriteSQ, WriteInline or WriteRQ and stays private
// until the next publish; several slots may share one publish. It is free again
// once Polled was given its completion or a later one of its queue, or urdmad
// completed it without one.
type ClientQP struct {
	head *abi.QPRing
	sq   clientQueue
	rq   clientQueue
}

// Init attaches to the memory that the response to CREATE_QP describes, with
// empty rings. sigAll is what CREATE_QP said.
func (q *ClientQP) Init(mem []byte, r *abi.QPResponse, sigAll bool) {
	h := abi.At[abi.QPRing](mem, 0)
	*q = ClientQP{head: h}
	q.sq = clientQueue{mem: mem[r.SQOffset:][:r.SQEntries*r.SQStride], stride: r.SQStride, mask: r.SQEntries - 1,
		depth: r.Cap.MaxSendWR, maxSGE: r.Cap.MaxSendSGE, all: sigAll, head: h, published: &h.SQProd, done: &h.SQCons}
	q.rq = clientQueue{mem: mem[r.RQOffset:][:r.RQEntries*r.RQStride], stride: r.RQStride, mask: r.RQEntries - 1,
		depth: r.Cap.MaxRecvWR, maxSGE: r.Cap.MaxRecvSGE, all: true, head: h, published: &h.RQProd, done: &h.RQCons}
}

func (q *ClientQP) of(e *abi.CQE) *clientQueue {
	if e.Opcode&abi.WCRecv != 0 {
		return &q.rq
	}
	return &q.sq
}

// Polled notes that a completion of this queue pair was polled. It and the two
// Lost belong to whoever polls; posting goes on meanwhile.
func (q *ClientQP) Polled(e *abi.CQE) {
	atomic.StoreUint32(&q.of(e).polled, e.Index+1) // partner: the load when the queue looks full
}

// Lost reports whether LostSend or LostRecv has made up the completion of the
// same work request before.
func (q *ClientQP) Lost(e *abi.CQE) bool { return q.of(e).stale(e.Index) }

// LostSend takes the oldest send that lacks a completion that urdmad, which has
// ended, owed it. The completion queue must have been emptied.
func (q *ClientQP) LostSend() (id uint64, opcode uint32, ok bool) { return q.sq.lost() }

// LostRecv is LostSend for receives.
func (q *ClientQP) LostRecv() (id uint64, ok bool) {
	id, _, ok = q.rq.lost()
	return id, ok
}

// RecvsLeft is how many receives were posted whose completion was not polled.
func (q *ClientQP) RecvsLeft() int { return int(q.rq.prod - q.rq.unpolled()) }

// Reset follows urdmad's move to RESET: nothing is posted, and the completions of
// what was are not to be polled any more.
func (q *ClientQP) Reset() {
	q.sq.reset()
	q.rq.reset()
}

// MaxSGE is how many scatter/gather elements a send work request may have,
// MaxInline how many bytes of inline data, MaxRecvSGE the elements of a receive.
func (q *ClientQP) MaxSGE() int     { return int(q.sq.maxSGE) }
func (q *ClientQP) MaxInline() int  { return int(q.sq.stride - sqHeadBytes) }
func (q *ClientQP) MaxRecvSGE() int { return int(q.rq.maxSGE) }

// FreeSQ and FreeRQ are how many slots can be written now.
func (q *ClientQP) FreeSQ() int { return q.sq.free() }
func (q *ClientQP) FreeRQ() int { return q.rq.free() }

// WriteSQ writes a send work request; NumSGE is taken from sge. False means
// that the queue is full or the list longer than MaxSGE.
func (q *ClientQP) WriteSQ(w *abi.SQE, sge []abi.SGE) bool {
	if len(sge) > q.MaxSGE() {
		return false
	}
	slot := q.sq.reserve()
	if slot == nil {
		return false
	}
	head := (*abi.SQE)(unsafe.Pointer(&slot[0]))
	*head = *w
	head.NumSGE = uint32(len(sge))
	putSGE(slot[sqHeadBytes:], sge)
	q.sq.prod++
	return true
}

// WriteInline writes a send work request that carries its data itself: the
// pieces one after the other. InlineLength and the flag are set here. False
// means that the queue is full or the data longer than MaxInline.
func (q *ClientQP) WriteInline(w *abi.SQE, pieces ...[]byte) bool {
	total := 0
	for _, p := range pieces {
		total += len(p)
	}
	if total > q.MaxInline() {
		return false
	}
	slot := q.sq.reserve()
	if slot == nil {
		return false
	}
	head := (*abi.SQE)(unsafe.Pointer(&slot[0]))
	*head = *w
	head.Flags |= abi.SendInline
	head.NumSGE, head.InlineLength = 0, uint32(total)
	at := sqHeadBytes
	for _, p := range pieces {
		at += copy(slot[at:], p)
	}
	q.sq.prod++
	return true
}

// PublishSQ makes the send slots written so far visible to urdmad; ring the
// queue pair's doorbell afterwards.
func (q *ClientQP) PublishSQ() {
	atomic.StoreUint32(&q.head.SQProd, q.sq.prod) // release: partner is urdmad's load before it copies slots
}

// WriteRQ writes a receive work request, as WriteSQ does.
func (q *ClientQP) WriteRQ(id uint64, sge []abi.SGE) bool {
	if len(sge) > q.MaxRecvSGE() {
		return false
	}
	slot := q.rq.reserve()
	if slot == nil {
		return false
	}
	*(*abi.RQE)(unsafe.Pointer(&slot[0])) = abi.RQE{WRID: id, NumSGE: uint32(len(sge))}
	putSGE(slot[rqHeadBytes:], sge)
	q.rq.prod++
	return true
}

// PublishRQ is PublishSQ for receives.
func (q *ClientQP) PublishRQ() {
	atomic.StoreUint32(&q.head.RQProd, q.rq.prod) // release: partner is urdmad's load before it copies slots
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
// one side sees the other.
func (b *ClientBells) Ring(n int) (kick bool) {
	w := n >> 6 & 63
	atomic.OrUint64(&b.d.Bits[w], 1<<(n&63))
	atomic.OrUint64(&b.d.Summary, 1<<w)
	return atomic.LoadUint32(&b.d.Sleeping) != 0 && atomic.SwapUint32(&b.d.Sleeping, 0) != 0
}

// Yield returns when a client should give its core away (post: after the first
// post since a poll; poll: after this many empty polls in a row) and the CPU
// that the worker runs on.
func (b *ClientBells) Yield() (post, poll, core uint32) {
	return atomic.LoadUint32(&b.d.YieldPost), atomic.LoadUint32(&b.d.YieldPoll), atomic.LoadUint32(&b.d.Core)
}
