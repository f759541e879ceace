package qp_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
)

// pattern fills memory so that bytes in the wrong place show.
func pattern(b []byte) {
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
}

// TestReadAheadIsBounded: however much a client posts of memory that urdmad cannot
// map, or its peers read of it, no more than its budget is read ahead, and all of it
// arrives.
func TestReadAheadIsBounded(t *testing.T) {
	const size, ops = 1<<20 + 12345, 100
	for _, read := range []bool{false, true} {
		enginetest.Memories(t, func(t *testing.T, local bool,
			register func(*enginetest.Client, int, uint32) *enginetest.Region) {
			w := enginetest.New(t, enginetest.Options{Seed: 90, MTU: 9000,
				Path: linked.Path{Loss: 0.001, Delay: 10 * time.Microsecond}})
			a, b := w.Pair(local, &abi.QPCap{MaxSendWR: ops, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1})
			src := register(a.Client, size, enginetest.ReadWrite)
			pattern(src.Bytes)
			sink := b.Client.Register(size, enginetest.ReadWrite)
			q := a
			if read {
				q = b
			}
			for i := range ops {
				if read {
					q.Post(enginetest.Read(uint64(i), src, 0), sink.SGE(0, size))
				} else {
					q.Post(enginetest.Write(uint64(i), sink, 0), src.SGE(0, size))
				}
			}
			most, done := 0, 0
			w.Until("completions", 60*time.Second, func() bool {
				most = max(most, a.Client.E.BytesAhead(), b.Client.E.BytesAhead())
				for _, e := range q.Send.Poll() {
					if e.Status != abi.StatusSuccess {
						t.Fatalf("completion %+v", e)
					}
					done++
				}
				return done == ops
			})
			if !src.Shared() && !a.Client.E.Space.Direct() && most == 0 || most > qp.MaxReadAhead {
				t.Errorf("read %v: %d bytes were read ahead at a time, expected at most %d", read, most, qp.MaxReadAhead)
			}
			if !bytes.Equal(src.Bytes, sink.Bytes) {
				t.Errorf("read %v: other bytes arrived", read)
			}
			w.Pass(time.Second)
			if n := a.Client.E.BytesAhead() + b.Client.E.BytesAhead(); n != 0 {
				t.Errorf("read %v: %d bytes are still read ahead", read, n)
			}
		})
	}
}

// TestNullAmongReadAhead: of a list that has to be read ahead because urdmad can't map some of
// it, what names a null region is zeros, and what a Read writes there is lost.
func TestNullAmongReadAhead(t *testing.T) {
	enginetest.Memories(t, func(t *testing.T, local bool,
		register func(*enginetest.Client, int, uint32) *enginetest.Region) {
		const piece = 600000 // some chunks lie in the null region alone
		w := enginetest.New(t, enginetest.Options{Seed: 92, MTU: 9000})
		a, b := w.Pair(local, &abi.QPCap{MaxSendWR: 2, MaxRecvWR: 1, MaxSendSGE: 3, MaxRecvSGE: 1})
		slow, null, far := register(a.Client, 2*piece, enginetest.ReadWrite), a.Client.RegisterNull(),
			b.Client.Register(3*piece, enginetest.ReadWrite)
		list := []abi.SGE{slow.SGE(0, piece), null.SGE(1<<40, piece), slow.SGE(piece, piece)}
		pattern(slow.Bytes)
		pattern(far.Bytes)
		want := slices.Concat(slow.Bytes[:piece], make([]byte, piece), slow.Bytes[piece:])
		a.Post(enginetest.Write(1, far, 0), list...)
		if e := a.Send.Completions(1)[0]; e.Status != abi.StatusSuccess || !bytes.Equal(far.Bytes, want) {
			t.Errorf("a Write ended with %+v, or other bytes than its list names arrived", e)
		}
		pattern(far.Bytes)
		a.Post(enginetest.Read(2, far, 0), list...)
		if e := a.Send.Completions(1)[0]; e.Status != abi.StatusSuccess {
			t.Errorf("a Read ended with %+v", e)
		}
		if !bytes.Equal(slow.Bytes[:piece], far.Bytes[:piece]) || !bytes.Equal(slow.Bytes[piece:], far.Bytes[2*piece:]) {
			t.Error("a Read brought other bytes")
		}
	})
}

// TestBlockedPages: while a client's pages take no writes, its peers are held up
// once its budget is full, over a wire sooner, for want of acknowledgements; nobody
// else is, and everything arrives when they do.
func TestBlockedPages(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		const size, ops = 8 << 20, 8
		w := enginetest.New(t, enginetest.Options{Seed: 91, MTU: 9000, BlockedPages: true})
		a, b := w.Pair(local, nil)
		x, y := w.Pair(local, nil)
		src, sink := a.Client.Register(size, enginetest.ReadWrite), b.Client.RegisterFallback(size, enginetest.ReadWrite)
		pattern(src.Bytes)
		unblock := make(chan struct{})
		b.Client.E.Space.Submit(mem.Job{Write: true, Done: func(error) { <-unblock }})
		for i := range ops {
			a.Post(enginetest.Write(uint64(i), sink, 0), src.SGE(0, size))
		}
		w.Pass(200 * time.Millisecond)
		if n := b.Client.E.Unwritten(); n == 0 || local && n < qp.MaxUnwritten || n > qp.MaxUnwritten+1<<20 {
			t.Errorf("%d bytes wait to be written, expected about %d", n, qp.MaxUnwritten)
		}
		w.NewTraffic(x, y, enginetest.Load{Ops: 50, MaxSize: 20000}).Run(5 * time.Second)
		close(unblock)
		done := 0
		for give := time.Now().Add(time.Minute); done < ops && time.Now().Before(give); {
			w.Pass(time.Millisecond)
			time.Sleep(10 * time.Microsecond)
			done += len(a.Send.Poll())
		}
		for give := time.Now().Add(time.Minute); b.Client.E.Unwritten() > 0 &&
			time.Now().Before(give); w.Pass(time.Millisecond) {
			time.Sleep(10 * time.Microsecond)
		}
		if done != ops || !bytes.Equal(src.Bytes, sink.Bytes) {
			t.Errorf("%d of %d Writes completed, or other bytes arrived", done, ops)
		}
	})
}

// TestSlowMemoryIsNoRNR: memory that takes no writes for a while has its peer
// wait, and is not taken for a receive that is missing, by however few retries.
func TestSlowMemoryIsNoRNR(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		const size, ops = 8 << 20, 4
		w := enginetest.New(t, enginetest.Options{Seed: 92, MTU: 9000, BlockedPages: true})
		host := w.B
		if local {
			host = w.A
		}
		a, b := w.A.NewClient().NewQP(nil), host.NewClient().NewQP(nil)
		src, sink := a.Client.Register(size, enginetest.ReadWrite), b.Client.RegisterFallback(size, enginetest.ReadWrite)
		impatient := enginetest.Attempt
		impatient.RNRRetry, impatient.MinRNRTimer = 0, 1
		a.ReadyToReceive(b, impatient)
		b.ReadyToReceive(a, impatient)
		a.ReadyToSend(impatient)
		unblock := make(chan struct{})
		b.Client.E.Space.Submit(mem.Job{Write: true, Done: func(error) { <-unblock }})
		other, full := host.NewClient().NewQP(nil), b.Client.NewQP(nil)
		enginetest.Join(other, full, 4)
		more := other.Client.Register(size, enginetest.ReadWrite)
		for i := range ops {
			other.Post(enginetest.Write(uint64(i), sink, 0), more.SGE(0, size))
		}
		w.Pass(10 * time.Millisecond)
		for i := range ops {
			b.PostRecv(uint64(i), sink.SGE(0, size))
			a.Post(enginetest.Send(uint64(i)), src.SGE(0, size))
		}
		w.Pass(200 * time.Millisecond)
		if n := b.Client.E.Unwritten(); n < qp.MaxUnwritten {
			t.Errorf("%d bytes wait to be written, expected about %d", n, qp.MaxUnwritten)
		}
		close(unblock)
		var done []abi.CQE
		for give := time.Now().Add(time.Minute); len(done) < ops && time.Now().Before(give); {
			w.Pass(time.Millisecond)
			time.Sleep(10 * time.Microsecond)
			done = append(done, a.Send.Poll()...)
		}
		if enginetest.Expect(t, "Sends", done, []uint64{0, 1, 2, 3}, 0, 0, 0, 0); a.Q.State() != abi.QPSRTS {
			t.Errorf("state %d", a.Q.State())
		}
	})
}

// TestSmallReadAheadsAreBounded: a source of a byte on the fallback path counts for what it
// takes, not for its byte, and is read no further ahead than its client's budget allows.
func TestSmallReadAheadsAreBounded(t *testing.T) {
	const pairs, slots = 12, 16384
	w := enginetest.New(t, enginetest.Options{Seed: 93, RNRRetry: 7})
	c, peer := w.A.NewClient(), w.A.NewClient()
	src := c.RegisterFallback(4096, enginetest.ReadWrite)
	capacity := abi.QPCap{MaxSendWR: slots, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}
	for range pairs {
		a := c.NewQPOn(&capacity, c.NewCQ(8), c.NewCQ(8))
		enginetest.Join(a, peer.NewQP(nil), 4)
		for i := range uint64(slots) {
			wr := enginetest.Send(i) // no receive
			if !a.Ring.SQ.Write(&wr, []abi.SGE{src.SGE(0, 1)}) {
				t.Fatal("full")
			}
		}
		a.Ring.SQ.Publish()
		a.Bell()
	}
	w.Pass(10 * time.Millisecond)
	if n := w.A.Engine.QPs.Stats.FallbackJobs; n > qp.MaxReadAhead/512 {
		t.Errorf("%d sources of a byte are read ahead", n)
	}
	if n := c.E.BytesAhead(); n < qp.MaxReadAhead/4 || n > qp.MaxReadAhead {
		t.Errorf("%d bytes count for the client", n)
	}
}
