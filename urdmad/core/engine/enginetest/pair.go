package enginetest

import (
	"encoding/binary"
	"time"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// CQ is a completion queue of a client.
type CQ struct {
	Client *Client
	Q      *qp.CQ
	Ring   ring.ClientCQ
	Mem    []byte  // the ring's memory
	Events *Events // events of its channel

	users map[uint64]*QP // by handle

	ofDomain bool // completes receives of an XRC domain, which name no queue pair of the client
}

// NewCQ makes a completion queue with a channel.
func (c *Client) NewCQ(n int) *CQ {
	layout := ring.CQLayout(uint32(n))
	mem := make([]byte, layout.Bytes)
	c.handles++
	q := &CQ{Client: c, Mem: mem, Events: newEvents(c.Host.World.T), users: map[uint64]*QP{}}
	q.Q = &qp.CQ{Handle: c.handles, Client: &c.E.Client, Channel: q.Events.Engine, Async: c.Async.Engine}
	q.Q.Ring.Init(mem, &layout)
	q.Ring.Init(mem, &layout)
	return q
}

// Poll returns all completions.
func (q *CQ) Poll() []abi.CQE {
	out := make([]abi.CQE, q.Ring.Entries())
	return out[:q.PollInto(out)]
}

// PollInto polls up to len(out) completions. Each must name its queue pair and its work request.
func (q *CQ) PollInto(out []abi.CQE) int {
	n := q.Ring.Poll(out)
	for i := range out[:n] {
		p := q.users[out[i].UserHandle]
		switch {
		case p == nil && (q.ofDomain && out[i].UserHandle == 0 || q.hostile()):
			continue
		case p == nil:
			q.Client.Host.World.T.Fatalf("completion %+v of an unknown queue pair", out[i])
		case !p.Hostile:
			p.check(&out[i])
		}
		p.Ring.Polled(&out[i])
	}
	return n
}

// hostile reports whether the client may have changed the completions itself.
func (q *CQ) hostile() bool {
	for _, p := range q.users {
		if p.Hostile {
			return true
		}
	}
	return false
}

// Completions polls until there are n completions.
func (q *CQ) Completions(n int) (out []abi.CQE) {
	w := q.Client.Host.World
	w.T.Helper()
	w.Until("completions", 20*time.Second, func() bool {
		out = append(out, q.Poll()...)
		return len(out) >= n
	})
	if len(out) != n {
		w.T.Fatalf("%d completions, expected %d: %+v", len(out), n, out)
	}
	return out
}

// Statuses returns the statuses of n work requests, whose IDs start at first, in completion
// order.
func (q *CQ) Statuses(first uint64, n int) (out []uint32) {
	t := q.Client.Host.World.T
	t.Helper()
	for i, e := range q.Completions(n) {
		if e.WRID != first+uint64(i) {
			t.Fatalf("completion %d: %+v", i, e)
		}
		out = append(out, e.Status)
	}
	return out
}

// check compares a completion with the slot that it names, which nobody writes
// before it is polled.
func (q *QP) check(e *abi.CQE) {
	l := &q.Layout
	if q.SRQ != nil && e.Opcode&abi.WCRecv != 0 {
		return // its slots are free as soon as they are taken
	}
	at := l.SQ.SlotsOffset + (e.Index&(l.SQ.Entries-1))*l.SQ.Stride
	if e.Opcode&abi.WCRecv != 0 {
		at = l.RQ.SlotsOffset + (e.Index&(l.RQ.Entries-1))*l.RQ.Stride
	}
	if id := binary.NativeEndian.Uint64(q.Mem[at:]); e.WRID != id || e.QPNum != q.Q.QPN {
		q.Client.Host.World.T.Fatalf("completion %+v; its slot has id %d of QP %d", *e, id, q.Q.QPN)
	}
}

// TakeEvents reads and counts completion events.
func (q *CQ) TakeEvents() (n int) {
	for {
		if _, ok := read[abi.CompEvent](q.Events); !ok {
			return n
		}
		n++
	}
}

// QP is a queue pair of a client.
type QP struct {
	Client *Client
	Q      *qp.QP
	Ring   ring.ClientQP
	Mem    []byte // the rings' memory
	Layout abi.QPResponse
	Send   *CQ
	Recv   *CQ

	SRQ       *SRQ // nil: it has a receive queue of its own
	Doorbell  int
	Hostile   bool       // the client may change its slots at any time
	Target    *qp.Target // reference, if of type XRC_RECV
	destroyed bool
}

// DefaultCap are the capabilities for NewQP(nil).
var DefaultCap = abi.QPCap{MaxSendWR: 64, MaxRecvWR: 64, MaxSendSGE: 32, MaxRecvSGE: 32, MaxInline: 256}

// NewQP returns a queue pair in INIT with queues of its own.
func (c *Client) NewQP(want *abi.QPCap) *QP {
	if want == nil {
		want = &DefaultCap
	}
	return c.NewQPOn(want, c.NewCQ(int(want.MaxSendWR)+8), c.NewCQ(int(want.MaxRecvWR)+8))
}

// NewQPOn returns a queue pair that completes to given queues.
func (c *Client) NewQPOn(want *abi.QPCap, send, recv *CQ) *QP {
	return c.newQP(abi.QPTypeRC, want, send, recv, nil)
}

func (c *Client) newQP(kind uint32, want *abi.QPCap, send, recv *CQ, srq *SRQ) *QP {
	t := c.Host.World.T
	t.Helper()
	q := &QP{Client: c, Layout: ring.QPLayout(*want), Send: send, Recv: recv, SRQ: srq}
	var shared *qp.RecvQueue
	if srq != nil {
		shared = srq.Q
	}
	q.Mem = make([]byte, q.Layout.Bytes)
	c.handles++
	q.Q = qp.New(qp.Config{Handle: c.handles, Type: kind, Client: &c.E.Client, PD: c.PD, SendCQ: send.Q, RecvCQ: recv.Q,
		SRQ: shared, Async: c.Async.Engine,
		MaxMessage: maxMessage(kind, c.Host), Cap: q.Layout.Cap, UserHandle: uint64(c.handles) << 32}, q.Mem, &q.Layout)
	q.Q.QPN, c.NextQPN = c.NextQPN, 0
	send.users[q.Q.UserHandle], recv.users[q.Q.UserHandle] = q, q
	q.Ring.Init(q.Mem, &q.Layout, false)
	t.Cleanup(q.Destroy)
	c.Host.Do(func() {
		if err := c.Host.addQP(q); err != nil {
			t.Error(err)
		}
		if kind != abi.QPTypeRC {
			return
		}
		if err := q.Q.Modify(initMask, &initAttr); err != nil {
			t.Error(err)
		}
	})
	return q
}

// initMask and initAttr move a queue pair to INIT, with the rights that rdma_cm
// gives.
var (
	initMask uint32 = abi.QPMaskState | abi.QPMaskPort | abi.QPMaskPKeyIndex | abi.QPMaskAccessFlags
	initAttr        = abi.QPAttr{QPState: abi.QPSInit, PortNum: 1, QPAccessFlags: qp.RDMAConnectAccess}
)

func (h *Host) addQP(q *QP) (err error) {
	q.Doorbell, err = h.Engine.AddQP(q.Client.E, q.Q)
	return err
}

// Post posts one send work request and rings.
func (q *QP) Post(w abi.SQE, sge ...abi.SGE) {
	q.Client.Host.World.T.Helper()
	if !q.Ring.SQ.Write(&w, sge) {
		q.Client.Host.World.T.Fatalf("send queue of QP %d is full", q.Q.QPN)
	}
	q.Ring.SQ.Publish()
	q.Bell()
}

// PostInline posts a send work request with inline data.
func (q *QP) PostInline(w abi.SQE, data []byte) {
	q.Client.Host.World.T.Helper()
	if !q.Ring.SQ.WriteInline(&w, data) {
		q.Client.Host.World.T.Fatalf("send queue of QP %d is full", q.Q.QPN)
	}
	q.Ring.SQ.Publish()
	q.Bell()
}

// PostRecv posts one receive work request.
func (q *QP) PostRecv(id uint64, sge ...abi.SGE) {
	q.Client.Host.World.T.Helper()
	if !q.Ring.RQ.Write(id, sge) {
		q.Client.Host.World.T.Fatalf("receive queue of QP %d is full", q.Q.QPN)
	}
	q.Ring.RQ.Publish()
	q.Bell()
}

// Bell rings the doorbell.
func (q *QP) Bell() { q.Client.Bells.Ring(q.Doorbell) }

// Modify changes the state.
func (q *QP) Modify(state uint32) (err error) {
	h := q.Client.Host
	h.Do(func() { err = q.Q.Modify(abi.QPMaskState, &abi.QPAttr{QPState: state}) })
	if err == nil && state == abi.QPSReset {
		q.Ring.Reset()
	}
	return err
}

// Destroy removes the queue pair; a second call does nothing.
func (q *QP) Destroy() {
	if q.destroyed {
		return
	}
	q.destroyed = true
	h := q.Client.Host
	if q.Target != nil {
		h.Do(func() {
			if q.Q.References.Remove(q.Target) {
				h.Engine.QPs.Remove(q.Q)
			}
		})
		return
	}
	h.Do(func() { h.Engine.RemoveQP(q.Client.E, q.Q, q.Doorbell) })
}

// leaveTimeout is how long control waits for the last posts to be sent.
const leaveTimeout = 100 * clock.Millisecond

// Leave destroys the queue pair as control does: the last posts are sent first. It reports
// whether all were sent in time.
func (q *QP) Leave() (sent bool) {
	w := q.Client.Host.World
	left := true
	for end := w.Now() + leaveTimeout; left && w.Now() < end; w.Step() {
		q.Client.Host.Do(func() { left = q.Q.SendLast() })
	}
	q.Destroy()
	return !left
}

// Send makes a signaled work request.
func Send(id uint64) abi.SQE {
	return abi.SQE{WRID: id, Opcode: abi.WRSend, Flags: abi.SendSignaled}
}

// Write makes a signaled RDMA Write to off of a region.
func Write(id uint64, r *Region, off int) abi.SQE {
	return abi.SQE{WRID: id, Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled, RKey: uint32(r.STag),
		RemoteAddr: r.Base() + uint64(off)}
}

// Read makes a signaled RDMA Read from off of a region.
func Read(id uint64, r *Region, off int) abi.SQE {
	w := Write(id, r, off)
	w.Opcode = abi.WRRDMARead
	return w
}

// FetchAdd makes a signaled atomic addition to 8 bytes at off of a region.
func FetchAdd(id uint64, r *Region, off int, add uint64) abi.SQE {
	w := Write(id, r, off)
	w.Opcode, w.CompareAdd = abi.WRAtomicFetchAndAdd, add
	return w
}

// CmpSwap makes a signaled atomic compare and swap of 8 bytes at off of a region.
func CmpSwap(id uint64, r *Region, off int, compare, swap uint64) abi.SQE {
	w := Write(id, r, off)
	w.Opcode, w.CompareAdd, w.Swap = abi.WRAtomicCmpAndSwp, compare, swap
	return w
}

// WithImmediate adds immediate data to a work request.
func WithImmediate(w abi.SQE, imm uint32) abi.SQE {
	w.Opcode = map[uint32]uint32{abi.WRSend: abi.WRSendWithImm, abi.WRRDMAWrite: abi.WRRDMAWriteWithImm}[w.Opcode]
	w.ImmOrSTag = imm
	return w
}
