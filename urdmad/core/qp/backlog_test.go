package qp_test

import (
	"encoding/binary"
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// blocked has a client's memory on the fallback path take no writes until the
// function is called, which then waits until all that waits was written.
func blocked(t *testing.T, w *enginetest.World, c *enginetest.Client) (unblock func()) {
	gate := make(chan struct{})
	c.E.Space.Submit(mem.Job{Write: true, Done: func(error) { <-gate }})
	return func() {
		t.Helper()
		close(gate)
		for give := time.Now().Add(60 * time.Second); c.E.Unwritten() > 0; w.Pass(time.Millisecond) {
			if time.Now().After(give) {
				t.Fatalf("%d bytes still wait to be written", c.E.Unwritten())
			}
			time.Sleep(10 * time.Microsecond)
		}
	}
}

// mostWaiting is what may wait for a client whose pages take nothing: its bound, and
// what one turn brings besides.
const mostWaiting = qp.MaxUnwritten + 1<<20

// TestUCBacklog: a queue pair of type UC has no credits by which its peer would be
// held up. What comes while the client's pages block is dropped once its budget is
// full, from wherever it comes.
func TestUCBacklog(t *testing.T) {
	for name, operation := range map[string]func(u *enginetest.DatagramPair, id uint64) abi.SQE{
		"Write": func(u *enginetest.DatagramPair, id uint64) abi.SQE { return enginetest.Write(id, u.MB, 0) },
		"Send": func(u *enginetest.DatagramPair, id uint64) abi.SQE {
			u.QB.PostRecv(id, u.MB.SGE(0, 1<<20))
			return enginetest.Send(id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Both(t, func(t *testing.T, local bool) {
				u := enginetest.NewUCPair(t, local, enginetest.Options{MTU: 9000, BlockedPages: true})
				u.MB = u.QB.Client.RegisterFallback(1<<20, enginetest.ReadWrite)
				unblock := blocked(t, u.World, u.QB.Client)
				for id := range uint64(20) {
					u.QA.Post(operation(u, id), u.MA.SGE(0, 1<<20))
					u.QA.Send.Completions(1)
					if n := u.QB.Client.E.Unwritten(); n > mostWaiting {
						t.Fatalf("%d bytes wait to be written, expected %d at most", n, mostWaiting)
					}
				}
				unblock()
				jobs := u.QB.Client.Host.Engine.QPs.Stats.FallbackJobs
				u.QA.Post(operation(u, 41), u.MA.SGE(0, 1000))
				u.QA.Send.Completions(1)
				if u.Pass(10 * time.Millisecond); u.QB.Client.Host.Engine.QPs.Stats.FallbackJobs != jobs+1 {
					t.Error("what comes afterwards is not written")
				}
			})
		})
	}
}

// TestSmallWritesAreBounded: what waits for a client's pages is bounded also where
// it is many Writes of a byte, each of which takes more than its byte.
func TestSmallWritesAreBounded(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		const most = 40_000 // jobs: MaxUnwritten is enough for about 32,000
		w := enginetest.New(t, enginetest.Options{Seed: 97, BlockedPages: true})
		a, b := w.Pair(local, nil)
		src, sink := a.Client.Register(4096, enginetest.ReadWrite), b.Client.RegisterFallback(4096, enginetest.ReadWrite)
		unblock := blocked(t, w, b.Client)
		stats := &b.Client.Host.Engine.QPs.Stats
		for posted := 0; posted < most+5000; {
			if a.Ring.SQ.Free() == 0 {
				if w.Pass(20 * time.Microsecond); len(a.Send.Poll()) == 0 {
					break // the peer takes nothing more
				}
				continue
			}
			a.Post(enginetest.Write(uint64(posted), sink, 0), src.SGE(0, 1))
			posted++
		}
		if stats.FallbackJobs > most {
			t.Errorf("%d writes wait, expected %d at most", stats.FallbackJobs, most)
		}
		unblock()
	})
}

// TestDeferredCompletionsAreBounded: receives that complete behind a write that
// blocks wait in urdmad's memory; messages of no bytes, and receives that a queue
// pair in error flushes, don't make them ever more.
func TestDeferredCompletionsAreBounded(t *testing.T) {
	for name, flush := range map[string]bool{"messages": false, "flush": true} {
		t.Run(name, func(t *testing.T) {
			enginetest.Both(t, func(t *testing.T, local bool) { deferCompletions(t, local, flush) })
		})
	}
}

func deferCompletions(t *testing.T, local, flush bool) {
	const most = 40_000
	w := enginetest.New(t, enginetest.Options{Seed: 98, BlockedPages: true})
	a, b := w.Pair(local, nil)
	a.Hostile, b.Hostile = true, true
	src, sink := a.Client.Register(4096, enginetest.ReadWrite), b.Client.RegisterFallback(4096, enginetest.ReadWrite)
	unblock := blocked(t, w, b.Client)
	a.Post(enginetest.Write(0, sink, 0), src.SGE(0, 1))
	w.Pass(100 * time.Microsecond)
	if flush {
		if err := b.Modify(abi.QPSErr); err != nil {
			t.Fatal(err)
		}
	}
	head := b.Mem[b.Layout.RQ.HeadOffset:]
	taken := func() uint32 { return binary.NativeEndian.Uint32(head[64:]) }
	for idle := 0; taken() < most+5000 && idle < 200; idle++ {
		before := taken()
		binary.NativeEndian.PutUint32(head, before+32) // more receives, though none was polled
		b.Bell()
		for !flush && a.Ring.SQ.Free() > 0 {
			a.Post(enginetest.Send(1))
		}
		w.Pass(20 * time.Microsecond)
		a.Send.Poll()
		if taken() > before {
			idle = 0
		}
	}
	if taken() > most {
		t.Errorf("%d completions wait, expected %d at most", taken(), most)
	}
	unblock()
}
