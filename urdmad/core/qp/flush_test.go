package qp_test

import (
	"bytes"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestErrorStateFlushes: moving a queue pair to the error state in mid transfer
// completes everything exactly once, in order, ends the connection at once, and
// sends no byte that isn't the message's.
func TestErrorStateFlushes(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for seed := range uint64(20) {
			w := enginetest.New(t, enginetest.Options{Seed: seed + 1})
			a, b := w.Pair(local, nil)
			w.SetPath(linked.Path{Loss: 0.2, Delay: 50 * time.Microsecond})
			mine, peer := a.Client.Register(1<<20, enginetest.ReadWrite), b.Client.Register(1<<20, enginetest.ReadWrite)
			copy(mine.Bytes, bytes.Repeat([]byte{0xaa}, 1<<20))
			for i := range uint64(20) {
				a.Post(enginetest.Write(i, peer, int(i)*50000), mine.SGE(0, 50000))
				a.PostRecv(100 + i)
			}
			w.Pass(time.Duration(w.Rand.IntN(3000)) * time.Microsecond)
			before := w.Now()
			if err := a.Modify(abi.QPSErr); err != nil {
				t.Fatal(err)
			}
			a.PostRecv(120) // flushed too
			flushed := false
			for i, e := range a.Send.Completions(20) {
				flushed = flushed || e.Status == abi.StatusWRFlushErr
				if e.WRID != uint64(i) || flushed && e.Status != abi.StatusWRFlushErr || !flushed && e.Status != 0 {
					t.Fatalf("completion %d: %+v", i, e)
				}
			}
			for i, e := range a.Recv.Completions(21) {
				if e.WRID != 100+uint64(i) || e.Status != abi.StatusWRFlushErr {
					t.Fatalf("receive %d: %+v", i, e)
				}
			}
			a.Client.Event(abi.CMDisconnected, time.Second)
			b.Client.Event(abi.CMDisconnected, 5*time.Second)
			if took := time.Duration(w.Now() - before); took > 600*time.Millisecond {
				t.Errorf("the peer heard of it after %v", took)
			}
			for i, x := range peer.Bytes[:1000000] {
				if x != 0 && x != 0xaa {
					t.Fatalf("byte %d is %#x, which nobody sent", i, x)
				}
			}
			w.Pass(3 * time.Second)
			w.CheckQuiet()
		}
	})
}

// TestReset: a queue pair that went through RESET forgets its work without
// completions and can connect again.
func TestReset(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 8, Path: linked.Path{Delay: 50 * time.Microsecond}})
		a, b := w.Pair(local, nil)
		for range 3 {
			mine, peer := a.Client.Register(1<<20, enginetest.ReadWrite), b.Client.Register(1<<20, enginetest.ReadWrite)
			for i := range uint64(20) {
				a.Post(enginetest.Write(i, peer, 0), mine.SGE(0, 1<<20))
				a.PostRecv(100 + i)
			}
			w.Pass(100 * time.Microsecond)
			a.Send.Poll()
			if err := a.Modify(abi.QPSReset); err != nil {
				t.Fatal(err)
			}
			a.Send.Poll()
			a.Recv.Poll()
			a.Client.Event(abi.CMDisconnected, time.Second)
			b.Client.Event(abi.CMDisconnected, 5*time.Second)
			if err := b.Modify(abi.QPSReset); err != nil {
				t.Fatal(err)
			}
			b.Send.Poll()
			b.Recv.Poll()
			enginetest.Join(a, b, 16)
			w.NewTraffic(a, b, enginetest.Load{Ops: 50, MaxSize: 20000}).Run(10 * time.Second)
		}
	})
}

// TestDestroyedInMidTransfer: queue pairs that go away under load leave nothing
// behind, and others connect in their place.
func TestDestroyedInMidTransfer(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for seed := range uint64(10) {
			w := enginetest.New(t, enginetest.Options{Seed: seed + 1, Path: enginetest.Lossy})
			a, b := w.Pair(local, nil)
			for range 3 {
				tr := w.NewTraffic(a, b, enginetest.Load{Ops: 300, MaxSize: 20000})
				for range w.Rand.IntN(400) {
					tr.Step()
					w.Step()
				}
				gone, left := a, b
				if w.Rand.IntN(2) == 0 {
					gone, left = b, a
				}
				gone.Destroy()
				left.Client.Event(abi.CMDisconnected, 10*time.Second)
				gone.Client.Event(abi.CMDisconnected, time.Second)
				left.Destroy()
				w.Pass(3 * time.Second)
				w.CheckQuiet()
				a, b = a.Client.NewQP(nil), b.Client.NewQP(nil)
				enginetest.Join(a, b, 16)
			}
		}
	})
}

// TestAbandonedCompletesNothing: destroying or resetting a connected queue pair
// completes none of its work, and raises no event for a thread that waits: neither
// that of sends under way, nor that of receives.
func TestAbandonedCompletesNothing(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for _, abandon := range []func(q *enginetest.QP){
			func(q *enginetest.QP) { q.Destroy() },
			func(q *enginetest.QP) { q.ToInit() },
		} {
			n := enginetest.NewNumberPair(t, local, linked.Path{Delay: 50 * time.Microsecond})
			n.QB.ReadyToReceive(n.QA, enginetest.Attempt)
			n.QB.ReadyToSend(enginetest.Attempt)
			n.QA.ReadyToReceive(n.QB, enginetest.Attempt)
			n.QA.ReadyToSend(enginetest.Attempt)
			n.Exchange(1000)
			n.QA.Post(enginetest.Send(1), n.MA.SGE(0, 1000)) // nobody receives it
			n.QA.Post(enginetest.Write(2, n.MB, 0), n.MA.SGE(0, 1000))
			for i := range uint64(3) {
				n.QA.PostRecv(10+i, n.MA.SGE(5000, 1000))
			}
			n.Pass(10 * time.Millisecond)
			for _, q := range []*enginetest.CQ{n.QA.Send, n.QA.Recv} {
				q.TakeEvents()
				q.Ring.Arm(false)
			}
			abandon(n.QA)
			n.Pass(100 * time.Millisecond)
			for name, q := range map[string]*enginetest.CQ{"send": n.QA.Send, "receive": n.QA.Recv} {
				if got, events := q.Poll(), q.TakeEvents(); len(got) != 0 || events != 0 {
					t.Errorf("%s queue: %d events, completions %+v", name, events, got)
				}
			}
		}
	})
}
