package qp_test

import (
	"bytes"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestDeregisteredUnderWork: regions that go away while work uses them: no fault,
// every request completes once, and the peer learns of it when it next uses one.
func TestDeregisteredUnderWork(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for _, fallback := range []bool{false, true} {
			for seed := range uint64(10) {
				w := enginetest.New(t, enginetest.Options{Seed: seed + 1,
					Path: linked.Path{Delay: 20 * time.Microsecond, Loss: 0.02}})
				a, b := w.Pair(local, nil)
				reg := func(c *enginetest.Client) *enginetest.Region {
					if fallback {
						return c.RegisterFallback(1<<18, enginetest.ReadWrite)
					}
					return c.Register(1<<18, enginetest.ReadWrite)
				}
				mine, peer, inbox := reg(a.Client), reg(b.Client), reg(b.Client)
				b.PostRecv(9, inbox.SGE(0, 1<<18))
				a.Post(enginetest.Write(1, peer, 0), mine.SGE(0, 1<<18))
				a.Post(enginetest.Read(2, peer, 0), mine.SGE(0, 1<<18))
				a.Post(enginetest.Send(3), mine.SGE(0, 1<<18))
				w.Pass(time.Duration(w.Rand.IntN(1000)) * time.Microsecond)
				[]*enginetest.Region{mine, peer, inbox}[w.Rand.IntN(3)].Deregister()
				got := a.Send.Completions(3)
				for i, e := range got {
					if e.WRID != uint64(i+1) {
						t.Fatalf("seed %d: %+v", seed+1, got)
					}
				}
				b.Recv.Completions(1)
			}
		}
	})
}

// TestFallbackOrder: a receive behind RDMA Writes completes only when those are
// in the client's memory, whichever path they took, and a Read only with its
// data; the source of a Send is read before the Send goes.
func TestFallbackOrder(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		w := enginetest.New(t, enginetest.Options{Seed: 30})
		a, b := w.Pair(local, nil)
		src, sink := a.Client.RegisterFallback(200000, enginetest.ReadWrite),
			b.Client.RegisterFallback(200000, enginetest.ReadWrite)
		shared, dst := b.Client.Register(4096, enginetest.ReadWrite), a.Client.RegisterFallback(200000, enginetest.ReadWrite)
		for i := range src.Bytes {
			src.Bytes[i] = byte(i*3 + i>>9)
		}
		for round := range 20 {
			clear(sink.Bytes)
			clear(dst.Bytes)
			b.PostRecv(9, shared.SGE(0, 100))
			a.Post(enginetest.Write(1, sink, 0), src.SGE(0, 100000), src.SGE(100000, 100000))
			a.Post(enginetest.Send(2), src.SGE(0, 100))
			a.Post(enginetest.Read(3, sink, 0), dst.SGE(0, 150000))
			w.Until("receive", time.Second, func() bool { return len(b.Recv.Poll()) > 0 })
			if !bytes.Equal(sink.Bytes, src.Bytes) {
				t.Fatalf("round %d: the receive completed before the Write was in memory", round)
			}
			if !bytes.Equal(shared.Bytes[:100], src.Bytes[:100]) {
				t.Fatal("the Send's bytes differ")
			}
			enginetest.Expect(t, "sender", a.Send.Completions(3), []uint64{1, 2, 3}, 0, 0, 0)
			if !bytes.Equal(dst.Bytes[:150000], src.Bytes[:150000]) {
				t.Fatalf("round %d: the Read completed before its bytes were there", round)
			}
		}
	})
}

// TestFallbackUnmapped: memory that the client has unmapped fails its own queue
// pair, and completes what was posted. An event tells of what the peer met.
func TestFallbackUnmapped(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for _, which := range []string{"source", "sink"} {
			w := enginetest.New(t, enginetest.Options{Seed: 31})
			a, b := w.Pair(local, nil)
			src, sink := a.Client.Register(8192, enginetest.ReadWrite), b.Client.RegisterMissing(8192, enginetest.ReadWrite)
			if which == "source" {
				src, sink = a.Client.RegisterMissing(8192, enginetest.ReadWrite), b.Client.Register(8192, enginetest.ReadWrite)
			}
			b.PostRecv(9)
			a.Post(enginetest.Write(1, sink, 0), src.SGE(0, 8192))
			a.Post(enginetest.Send(2))
			a.Send.Completions(2)
			b.Recv.Completions(1)
			switch ev := b.Client.AsyncEvents(); {
			case which == "source" && len(ev) > 0, which == "sink" && (len(ev) != 1 || ev[0].EventType != abi.EventQPAccessErr):
				t.Errorf("%s: asynchronous events %+v", which, ev)
			}
			if ev := a.Client.AsyncEvents(); len(ev) > 0 {
				t.Errorf("%s: asynchronous events %+v of the sender", which, ev)
			}
			a.Client.Event(abi.CMDisconnected, time.Second)
			b.Client.Event(abi.CMDisconnected, time.Second)
		}
	})
}
