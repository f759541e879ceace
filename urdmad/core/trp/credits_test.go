package trp_test

import (
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
	"urdma/wire"
)

// TestPeerWithoutManners: if a peer sends without credits while its message waits for a receive, only the
// segments within its credits are kept.
func TestPeerWithoutManners(t *testing.T) {
	const window = 64
	w := enginetest.New(t, enginetest.Options{Seed: 75, Window: window})
	s := w.Stranger()
	q := w.A.NewClient().NewQP(nil)
	l := s.Dial(q, 0)
	q.Q.Connection().RNRRetry = 7
	for range 10 * window {
		l.Segment(wire.DDP{Op: wire.OpSend, QN: wire.QueueSend, MSN: 1}, make([]byte, 100)...)
		w.Step()
	}
	w.Pass(10 * time.Millisecond)
	if n := w.A.Engine.Interface(0).Kept; n > window {
		t.Errorf("%d packets are kept, the peer was allowed %d", n, window)
	}
	if q.Q.State() != abi.QPSRTS {
		t.Errorf("state %d", q.Q.State())
	}
}

// TestManyWaitingConnections: however many connections wait for receives, the port still serves the others,
// and the waiting messages arrive in the end.
func TestManyWaitingConnections(t *testing.T) {
	const waiting, messages = 12, 300
	w := enginetest.New(t, enginetest.Options{Seed: 76})
	var pairs [waiting][2]*enginetest.QP
	capacity := enginetest.DefaultCap
	capacity.MaxSendWR, capacity.MaxRecvWR = messages, messages
	for i := range pairs {
		a, b := w.A.NewClient().NewQP(&capacity), w.B.NewClient().NewQP(&capacity)
		enginetest.Join(a, b, 4)
		a.Q.Connection().RNRRetry, b.Q.Connection().RNRRetry = 7, 7
		pairs[i] = [2]*enginetest.QP{a, b}
	}
	x, y := w.Pair(false, nil)
	for _, p := range pairs {
		src := p[0].Client.Register(4096, enginetest.ReadWrite)
		for i := range messages {
			p[0].Post(enginetest.Send(uint64(i)), src.SGE(0, 1000))
		}
	}
	w.Pass(50 * time.Millisecond)
	if i := w.B.Engine.Interface(0); i.Kept > i.Keepable {
		t.Errorf("%d packets are kept of %d that may be", i.Kept, i.Keepable)
	}
	w.NewTraffic(x, y, enginetest.Load{Ops: 100, MaxSize: 20000}).Run(5 * time.Second)
	for _, p := range pairs {
		sink := p[1].Client.Register(4096, enginetest.ReadWrite)
		for i := range messages {
			p[1].PostRecv(uint64(i), sink.SGE(0, 1000))
		}
	}
	for i, p := range pairs {
		for j, e := range p[1].Recv.Completions(messages) {
			if e.Status != abi.StatusSuccess || e.WRID != uint64(j) {
				t.Fatalf("connection %d: completion %+v", i, e)
			}
		}
	}
	w.Pass(5 * time.Second)
}

// TestNothingCanBeKept: an interface that can keep nothing drops segments that are out of order or find no
// receive, before it accepts them, and everything still arrives.
func TestNothingCanBeKept(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 77, Path: linked.Path{Loss: 0.02, Reorder: 0.05, Delay: 10_000}})
	w.A.Engine.Interface(0).Keepable, w.B.Engine.Interface(0).Keepable = 1, 1
	a, b := w.Pair(false, nil)
	w.NewTraffic(a, b, enginetest.Load{Ops: 100, MaxSize: 20000}).Run(60 * time.Second)
	if n := w.A.Engine.TRP.Stats.RetainFailed + w.B.Engine.TRP.Stats.RetainFailed; n == 0 {
		t.Error("everything could be kept")
	}
}

// TestWaitingWithoutMemory: a connection whose messages wait for receives without limit, and of which more have
// arrived than can be kept, does not assume that its peer is dead.
func TestWaitingWithoutMemory(t *testing.T) {
	const messages = 300
	w := enginetest.New(t, enginetest.Options{Seed: 78})
	w.B.Engine.Interface(0).Keepable = 64
	capacity := enginetest.DefaultCap
	capacity.MaxSendWR, capacity.MaxRecvWR = messages, messages
	a, b := w.A.NewClient().NewQP(&capacity), w.B.NewClient().NewQP(&capacity)
	enginetest.Join(a, b, 4)
	a.Q.Connection().RNRRetry, b.Q.Connection().RNRRetry = 7, 7
	src, sink := a.Client.Register(4096, enginetest.ReadWrite), b.Client.Register(4096, enginetest.ReadWrite)
	for i := range messages {
		a.Post(enginetest.Send(uint64(i)), src.SGE(0, 1000))
	}
	w.Pass(20 * time.Second)
	if w.B.Engine.TRP.Stats.RetainFailed == 0 {
		t.Error("everything could be kept")
	}
	for i := range messages {
		b.PostRecv(uint64(i), sink.SGE(0, 1000))
	}
	for j, e := range b.Recv.Completions(messages) {
		if e.Status != abi.StatusSuccess || e.WRID != uint64(j) {
			t.Fatalf("completion %+v", e)
		}
	}
}
