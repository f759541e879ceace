package ring_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// request is a work request in the model of a queue.
type request struct {
	id       uint64
	signaled bool
	done     bool // urdmad has completed it
	silent   bool // completed without a completion
}

// slotModel is a model of a client's queue: all requests from the first slot in use on, and the unpolled
// completions.
type slotModel struct {
	random *rand.Rand
	c      ring.ClientQP
	s      ring.ServerQP
	recv   bool
	all    bool // every request has a completion

	depth  int
	base   uint32 // index of queue[0]
	queue  []request
	cqes   []abi.CQE
	failed bool
	posted uint64
}

func newSlotModel(r *rand.Rand, depth int, recv, sigAll bool) *slotModel {
	m := &slotModel{random: r, depth: depth, recv: recv, all: recv || sigAll, base: uint32(-r.IntN(200))}
	layout := ring.QPLayout(abi.QPCap{MaxSendWR: uint32(depth), MaxRecvWR: uint32(depth), MaxSendSGE: 1, MaxRecvSGE: 1})
	mem := make([]byte, layout.Bytes)
	m.c.Init(mem, &layout, sigAll)
	m.s.Init(mem, &layout)
	startAt(&m.c, &m.s, m.base)
	return m
}

func (m *slotModel) free() int {
	if m.recv {
		return m.c.RQ.Free()
	}
	return m.c.SQ.Free()
}

func (m *slotModel) post() bool {
	r := request{id: m.posted, signaled: m.all || m.random.IntN(3) == 0}
	ok := false
	if m.recv {
		ok = m.c.RQ.Write(r.id, nil)
		m.c.RQ.Publish()
	} else {
		w := abi.SQE{WRID: r.id, Opcode: abi.WRRDMARead}
		if r.signaled && m.random.IntN(2) == 0 || r.signaled && !m.all {
			w.Flags = abi.SendSignaled
		}
		ok = m.c.SQ.Write(&w, nil)
		m.c.SQ.Publish()
	}
	if ok {
		m.queue = append(m.queue, r)
		m.posted++
	}
	return ok
}

// complete is urdmad's part: it completes the oldest request. With lose it dies before the completion is
// visible.
func (m *slotModel) complete(lose bool) {
	for i := range m.queue {
		r := &m.queue[i]
		if r.done {
			continue
		}
		index := m.base + uint32(i)
		r.done, r.silent = true, !r.signaled && !m.failed
		e := abi.CQE{WRID: r.id, Index: index}
		if m.recv {
			e.Opcode = abi.WCRecv
			m.s.RQ.PublishCons(index + 1)
		} else {
			m.s.SQ.PublishCons(index + 1)
		}
		if !r.silent && !lose {
			m.cqes = append(m.cqes, e)
		}
		return
	}
}

// fail is urdmad's part, too: the next request to be completed is the first that fails.
func (m *slotModel) fail() {
	if m.failed || m.recv {
		return
	}
	m.failed = true
	i := 0
	for i < len(m.queue) && m.queue[i].done {
		i++
	}
	m.s.SQ.PublishFailed(m.base + uint32(i))
}

func (m *slotModel) poll() {
	if len(m.cqes) == 0 {
		return
	}
	e := m.cqes[0]
	m.cqes = m.cqes[1:]
	m.c.Polled(&e)
	n := int(e.Index + 1 - m.base)
	m.base, m.queue = e.Index+1, m.queue[n:]
}

// settle removes free slots from the model.
func (m *slotModel) settle() {
	for len(m.queue) > 0 && m.queue[0].silent {
		m.base, m.queue = m.base+1, m.queue[1:]
	}
}

func (m *slotModel) reset() {
	stale := m.cqes
	m.base += uint32(len(m.queue))
	m.queue, m.cqes, m.failed = nil, nil, false
	m.s.SQ.ClearFailed()
	m.s.SQ.PublishCons(m.base)
	m.s.RQ.PublishCons(m.base)
	m.c.Reset()
	for _, e := range stale { // taken just before
		m.c.Polled(&e)
	}
}

// TestSlotsAreFreeWhenPolled compares a queue with the model, across the wrap of its indices, with errors and
// resets; at the end urdmad dies, and the flushed completions must be those that the model lacks.
func TestSlotsAreFreeWhenPolled(t *testing.T) {
	for _, kind := range []struct {
		name         string
		recv, sigAll bool
	}{{"send", false, false}, {"all signaled", false, true}, {"receive", true, false}} {
		t.Run(kind.name, func(t *testing.T) {
			random := seeded(t)
			for range 300 {
				m := newSlotModel(random, 1+random.IntN(20), kind.recv, kind.sigAll)
				m.run(t)
				m.die(t)
			}
		})
	}
}

func (m *slotModel) run(t *testing.T) {
	for step := range 500 {
		switch n := m.random.IntN(100); {
		case n < 45:
			m.settle()
			used := len(m.queue)
			if ok := m.post(); ok != (used < m.depth) {
				t.Fatalf("step %d: posting with %d of %d slots in use: %v", step, used, m.depth, ok)
			}
		case n < 75:
			m.complete(false)
		case n < 97:
			m.poll()
		case n < 98:
			m.fail()
		case n < 99:
			m.reset()
		}
		if len(m.cqes) > m.depth {
			t.Fatalf("step %d: %d completions of a queue of %d", step, len(m.cqes), m.depth)
		}
		if m.random.IntN(2) == 0 {
			m.settle()
			if got, want := m.free(), m.depth-len(m.queue); got != want {
				t.Fatalf("step %d: %d slots are free, expected %d", step, got, want)
			}
		}
	}
}

// die: urdmad dies between index and completion; then the client empties its queue and makes the flushed
// completions.
func (m *slotModel) die(t *testing.T) {
	if m.random.IntN(2) == 0 {
		m.complete(true)
	}
	for len(m.cqes) > 0 {
		m.poll()
	}
	for _, r := range m.queue {
		if r.silent {
			continue
		}
		if id, ok := m.lost(); !ok || id != r.id {
			t.Fatalf("lost: %d, %v; expected %d", id, ok, r.id)
		}
	}
	if id, ok := m.lost(); ok {
		t.Fatalf("%d is lost, which was completed", id)
	}
}

func (m *slotModel) lost() (id uint64, ok bool) {
	if m.recv {
		return m.c.RQ.Lost()
	}
	id, op, ok := m.c.SQ.Lost()
	if ok && op != abi.WRRDMARead {
		return id, false
	}
	return id, ok
}

// TestOldPollsSayNothing: after 2^32 sends without completions, the index of the last polled completion comes
// round again and must not count a second time.
func TestOldPollsSayNothing(t *testing.T) {
	c, s, _ := pair(abi.QPCap{MaxSendWR: 4, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1})
	startAt(&c, &s, 0)
	c.SQ.Write(&abi.SQE{Flags: abi.SendSignaled}, nil)
	s.SQ.PublishCons(1)
	c.Polled(&abi.CQE{Index: 0})
	if c.SQ.Free() != 4 {
		t.Fatal("a polled slot is not free")
	}
	ring.PassSilently(&c, 0xfffffffe) // all but one of 2^32 sends
	s.SQ.PublishCons(0xffffffff)
	for id := range uint64(4) {
		if !c.SQ.Write(&abi.SQE{WRID: id}, nil) {
			t.Fatal("a free slot is refused")
		}
	}
	if c.SQ.Write(&abi.SQE{}, nil) || c.SQ.Free() != 0 {
		t.Error("a slot is free that urdmad has not completed")
	}
	c.SQ.Publish()
	for want := range uint64(4) {
		if id, _, ok := c.SQ.Lost(); !ok || id != want {
			t.Fatalf("lost: %d, %v; expected %d, which urdmad has not completed", id, ok, want)
		}
	}
}

// TestSlotsBothAtOnce posts, completes and polls in separate goroutines, for the race detector.
func TestSlotsBothAtOnce(t *testing.T) {
	const total, depth = 20000, 8
	c, s, _ := pair(abi.QPCap{MaxSendWR: depth, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1})
	startAt(&c, &s, 0xffffff00)
	cqes := make(chan abi.CQE, depth) // as large as the queue, so sending never blocks
	var unpolled atomic.Int32
	go func() {
		for cons, n := uint32(0xffffff00), uint64(0); n < total; {
			prod, err := s.SQ.Prod(cons)
			if err != nil {
				panic(err)
			}
			for ; cons != prod; cons++ {
				var e abi.SQE
				s.SQ.Read(cons, &e, nil)
				if e.WRID != n {
					panic(fmt.Sprintf("request %d, expected %d", e.WRID, n))
				}
				n++
				s.SQ.PublishCons(cons + 1)
				if e.Flags&abi.SendSignaled != 0 {
					if unpolled.Add(1) > depth {
						panic("more completions than slots")
					}
					cqes <- abi.CQE{WRID: e.WRID, Index: cons}
				}
			}
			runtime.Gosched()
		}
		close(cqes)
	}()
	go func() {
		for n := uint64(0); n < total; {
			w := abi.SQE{WRID: n}
			if n%3 == 0 {
				w.Flags = abi.SendSignaled
			}
			if c.SQ.Write(&w, nil) {
				c.SQ.Publish()
				n++
			} else {
				runtime.Gosched()
			}
		}
	}()
	next := uint64(0)
	for e := range cqes {
		unpolled.Add(-1)
		c.Polled(&e)
		if e.WRID != next {
			t.Fatalf("completion of %d, expected %d", e.WRID, next)
		}
		next += 3
	}
}
