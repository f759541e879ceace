package engine_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// scribbler is a client that writes anything into what it shares with urdmad.
type scribbler struct {
	w       *enginetest.World
	a, b    *enginetest.QP
	mine    *enginetest.Region
	foreign *enginetest.Region // of another client of the same host
	secret  *enginetest.Region // of the peer, without remote rights
	open    *enginetest.Region // of the peer, with them
}

func newScribbler(t testing.TB, seed uint64, local bool) *scribbler {
	w := enginetest.New(t, enginetest.Options{Seed: seed})
	s := &scribbler{w: w}
	small := abi.QPCap{MaxSendWR: 8, MaxRecvWR: 8, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInline: 64}
	s.a, s.b = w.Pair(local, &small)
	s.a.Hostile = true
	s.mine, s.open = s.a.Client.Register(1<<16, enginetest.ReadWrite), s.b.Client.Register(1<<16, enginetest.ReadWrite)
	s.secret = s.b.Client.Register(1<<16, abi.AccessLocalWrite)
	s.foreign = w.A.NewClient().Register(1<<16, enginetest.ReadWrite)
	if seed%2 == 0 {
		enginetest.Record(t, w.A) // who captures is shown all of it
	}
	for i := range s.foreign.Bytes {
		s.foreign.Bytes[i], s.secret.Bytes[i] = 0x5e, 0x5e
	}
	for range 8 {
		s.b.PostRecv(1, s.open.SGE(0, 1000), s.open.SGE(5000, 3000))
	}
	return s
}

// scribble changes something in the rings: a slot with plausible parts, or
// anything anywhere.
func (s *scribbler) scribble(r *rand.Rand) {
	m, l := s.a.Mem, &s.a.Layout
	put32 := func(at int, v uint32) { binary.NativeEndian.PutUint32(m[at:], v) }
	put64 := func(at int, v uint64) { binary.NativeEndian.PutUint64(m[at:], v) }
	keys := []uint32{uint32(s.mine.STag), uint32(s.foreign.STag), uint32(s.open.STag), uint32(s.secret.STag), r.Uint32(),
		0}
	bases := []uint64{s.mine.Base(), s.open.Base(), s.secret.Base(), s.foreign.Base(), s.mine.Base() + 65500, 0,
		r.Uint64()}
	lengths := []uint32{0, 1, 100, 65536, 1 << 31, ^uint32(0), r.Uint32()}
	switch r.IntN(4) {
	case 0:
		at := int(l.SQ.SlotsOffset) + r.IntN(int(l.SQ.Entries))*int(l.SQ.Stride)
		put32(at+8, []uint32{0, 1, 2, 3, 4, 5, 9, r.Uint32()}[r.IntN(8)])
		put32(at+12, r.Uint32()>>r.IntN(32))
		put32(at+16, keys[r.IntN(len(keys))])
		put32(at+20, uint32(r.IntN(5)*r.IntN(5)))
		put32(at+24, lengths[r.IntN(len(lengths))])
		put32(at+28, keys[r.IntN(len(keys))])
		put64(at+32, bases[r.IntN(len(bases))])
		for k := range 4 {
			put64(at+64+16*k, bases[r.IntN(len(bases))])
			put32(at+64+16*k+8, lengths[r.IntN(len(lengths))])
			put32(at+64+16*k+12, keys[r.IntN(len(keys))])
		}
	case 1:
		at := int(l.RQ.SlotsOffset) + r.IntN(int(l.RQ.Entries))*int(l.RQ.Stride)
		put32(at+8, uint32(r.IntN(5)*r.IntN(5)))
		for k := range 3 {
			put64(at+16+16*k, bases[r.IntN(len(bases))])
			put32(at+16+16*k+8, lengths[r.IntN(len(lengths))])
			put32(at+16+16*k+12, keys[r.IntN(len(keys))])
		}
	case 2:
		put32([]int{0, 64, 128, 192}[r.IntN(4)],
			[]uint32{uint32(r.IntN(10)), r.Uint32(), binary.NativeEndian.Uint32(m) + uint32(r.IntN(9))}[r.IntN(3)])
	case 3:
		m[r.IntN(len(m))] ^= 1 << r.IntN(8)
	}
}

func (s *scribbler) check(t testing.TB) {
	t.Helper()
	for i := range s.foreign.Bytes {
		if s.foreign.Bytes[i] != 0x5e || s.secret.Bytes[i] != 0x5e {
			t.Fatalf("byte %d of memory that the client has no right to was written", i)
		}
	}
}

// TestHostileRings: rings, indices and doorbells with anything in them: no
// panic, nobody else's memory, and other clients' traffic goes on.
func TestHostileRings(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for seed := uint64(1); seed <= enginetest.Seeds(150); seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) { newScribbler(t, seed, local).spoil(t, local) })
		}
	})
}

func (s *scribbler) spoil(t *testing.T, local bool) {
	x, y := s.w.Pair(local, nil)
	tr := s.w.NewTraffic(x, y, enginetest.Load{Ops: 10, MaxSize: 3000})
	for range 60 {
		s.scribble(s.w.Rand)
		if s.w.Rand.IntN(2) == 0 {
			binary.NativeEndian.PutUint32(s.a.Mem, s.w.Rand.Uint32N(9)+binary.NativeEndian.Uint32(s.a.Mem[64:]))
		}
		s.a.Bell()
		for range 3 {
			s.a.Client.Section[s.w.Rand.IntN(4096)] ^= byte(s.w.Rand.Uint32())
		}
		tr.Step()
		s.w.Step()
		s.a.Send.Poll()
		s.a.Recv.Poll()
	}
	tr.Run(10 * time.Second)
	s.check(t)
}

// TestCompletionRingScribbled: a client that spoils its completion queue harms
// itself only.
func TestCompletionRingScribbled(t *testing.T) {
	for seed := uint64(1); seed <= enginetest.Seeds(50); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { scribbleCompletions(t, seed) })
	}
}

func scribbleCompletions(t *testing.T, seed uint64) {
	w := enginetest.New(t, enginetest.Options{Seed: seed})
	a, b := w.Pair(false, nil)
	mine, peer := a.Client.Register(1<<16, enginetest.ReadWrite), b.Client.Register(1<<16, enginetest.ReadWrite)
	x, y := w.Pair(false, nil)
	tr := w.NewTraffic(x, y, enginetest.Load{Ops: 20, MaxSize: 3000})
	for i := range uint64(300) {
		for range 4 {
			a.Send.Mem[w.Rand.IntN(len(a.Send.Mem))] = byte(w.Rand.Uint32())
		}
		if a.Ring.SQ.Free() > 0 {
			a.Post(enginetest.Write(i, peer, 0), mine.SGE(0, 100))
		}
		tr.Step()
		w.Step()
	}
	tr.Run(10 * time.Second)
}

// FuzzRing takes anything as the contents of a queue pair's shared memory.
func FuzzRing(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0}, uint32(1))
	f.Add(make([]byte, 3000), uint32(8))
	f.Fuzz(func(t *testing.T, data []byte, prod uint32) {
		s := newScribbler(t, 1, len(data)%2 == 0)
		copy(s.a.Mem[256:], data)
		binary.NativeEndian.PutUint32(s.a.Mem, prod)
		binary.NativeEndian.PutUint32(s.a.Mem[128:], prod)
		s.a.Bell()
		s.w.Pass(time.Millisecond)
		s.check(t)
	})
}

// TestMoreThanTheQueueHolds: a client that posts over requests that are under way
// fails its queue pair: their slots, and what they hold, are not overwritten.
func TestMoreThanTheQueueHolds(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 51, Path: linked.Path{Delay: time.Millisecond}})
	a, b := w.Pair(false, nil)
	a.Hostile = true
	mine, peer := a.Client.Register(4096, enginetest.ReadWrite), b.Client.Register(4096, enginetest.ReadWrite)
	for i := range uint64(64) {
		a.Post(enginetest.Write(i, peer, 0), mine.SGE(0, 10))
	}
	w.Pass(100 * time.Microsecond)
	binary.NativeEndian.PutUint32(a.Mem, 70)
	a.Bell()
	w.Pass(100 * time.Microsecond)
	if a.Q.State() != abi.QPSErr {
		t.Errorf("state %d, expected error", a.Q.State())
	}
	for _, e := range a.Send.Completions(70) {
		if e.Status != abi.StatusWRFlushErr {
			t.Fatalf("completion %+v, expected a flush", e)
		}
	}
}

// TestWakingUp: a sleeping engine is kicked by the next post, and by nothing
// that it has already seen.
func TestWakingUp(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 50})
	a, b := w.Pair(false, nil)
	mine, peer := a.Client.Register(4096, enginetest.ReadWrite), b.Client.Register(4096, enginetest.ReadWrite)
	post := func() (kick bool) {
		wr := enginetest.Write(1, peer, 0)
		a.Ring.SQ.Write(&wr, []abi.SGE{mine.SGE(0, 10)})
		a.Ring.SQ.Publish()
		return a.Client.Bells.Ring(a.Doorbell)
	}
	if post() {
		t.Error("a post kicked an engine that is awake")
	}
	if _, _, ok := w.A.Engine.PrepareSleep(nil); ok {
		t.Error("the engine goes to sleep over a bell that rang")
	}
	a.Send.Completions(1)
	w.Pass(10 * time.Millisecond)
	if fds, timed, ok := w.A.Engine.PrepareSleep(nil); !ok || !timed || len(fds) != 0 {
		t.Fatalf("PrepareSleep: %v %v %v", fds, timed, ok)
	}
	if !post() {
		t.Error("no kick for a sleeping engine")
	}
	if post() {
		t.Error("two kicks for one sleep")
	}
	w.A.Engine.Woke()
	a.Send.Completions(2)
	w.Pass(10 * time.Millisecond)
	w.A.Engine.Do(func() {})
	if _, _, ok := w.A.Engine.PrepareSleep(nil); ok {
		t.Error("the engine goes to sleep over a call")
	}
}

// TestCompletionEndsWait: a client that waits for a completion is woken by the turn
// that completes something of its own, and by no other; one that polls on the
// worker's core crowds it, one that waits, found something or stopped doesn't.
func TestCompletionEndsWait(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 51})
	a, b := w.Pair(false, nil)
	mine, peer := a.Client.Register(4096, enginetest.ReadWrite), b.Client.Register(4096, enginetest.ReadWrite)
	a.Client.Bells.Announce(true)
	w.Pass(10 * time.Millisecond)
	if !a.Client.Bells.Announced() {
		t.Fatal("woken with nothing completed")
	}
	woken := make(chan bool)
	go func() { a.Client.Bells.Wait(time.Minute); close(woken) }()
	a.Post(enginetest.Write(1, peer, 0), mine.SGE(0, 10))
	a.Send.Completions(1)
	<-woken // a wait that nobody ends fails the test binary's limit
	if a.Client.Bells.Announced() {
		t.Error("woken, and the announcement stands")
	}

	const core = 3
	crowded := func(what string, want bool) {
		t.Helper()
		if got := w.A.Engine.Crowded(core); got != want {
			t.Errorf("%s: crowded %v, expected %v", what, got, want)
		}
	}
	w.A.Engine.Moved(core)
	crowded("nobody polled", false)
	if a.Client.Bells.Polls(core + 1) {
		t.Error("another core is shared")
	}
	crowded("polls elsewhere", false)
	if !a.Client.Bells.Polls(core) {
		t.Error("this core is not shared")
	}
	crowded("polls here", true)
	crowded("has not polled since", false) // it computes, or waits in the kernel
	a.Client.Bells.Polls(core)
	a.Client.Bells.Announce(true)
	crowded("waits", false)
	a.Client.Bells.Announce(false)
	crowded("polls again", true)
	a.Client.Bells.Polls(core)
	a.Client.Bells.Found()
	crowded("found something", false)
	if w.A.Engine.Crowded(-1) {
		t.Error("an unknown core is crowded by who does not poll")
	}
}

// TestWriteEndsWait: a program that waits for urdmad may look at memory in turn with
// its queue (openib's eager RDMA), and a Write into it completes nothing there.
func TestWriteEndsWait(t *testing.T) {
	for name, local := range map[string]bool{"remote": false, "local": true} {
		t.Run(name, func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 52})
			a, b := w.Pair(local, nil)
			mine, peer := a.Client.Register(4096, enginetest.ReadWrite), b.Client.Register(4096, enginetest.ReadWrite)
			b.Client.Bells.Announce(true)
			a.Post(enginetest.Write(1, peer, 0), mine.SGE(0, 4000))
			a.Send.Completions(1)
			if b.Client.Bells.Announced() {
				t.Error("written to, and still waiting")
			}
		})
	}
}

// TestIdleIsIdle: with connections open and nothing to do a turn is not busy and
// the next deadline is far away.
func TestIdleIsIdle(t *testing.T) {
	for _, local := range []bool{false, true} {
		w := enginetest.New(t, enginetest.Options{Seed: 51})
		a, b := w.Pair(local, nil)
		w.NewTraffic(a, b, enginetest.Load{Ops: 50, MaxSize: 3000}).Run(time.Second)
		w.Pass(50 * time.Millisecond)
		turns := w.A.Engine.Stats.Turns
		w.Pass(10 * time.Second)
		if n := w.A.Engine.Stats.Turns - turns; n > 200 {
			t.Errorf("local %v: %d turns in 10 idle seconds", local, n)
		}
	}
}

// TestDownLinkIsIdle: work that a full port holds up doesn't keep the core busy.
func TestDownLinkIsIdle(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 52, TxRing: 4})
	a, b := w.Pair(false, nil)
	mine, peer := a.Client.Register(1<<16, enginetest.ReadWrite), b.Client.Register(1<<16, enginetest.ReadWrite)
	w.SetPath(linked.Path{Rate: 100}) // a frame takes minutes: the ring stays full
	for i := range uint64(10) {
		a.Post(enginetest.Write(i, peer, 0), mine.SGE(0, 1<<16))
	}
	w.Pass(10 * time.Millisecond)
	turns := w.A.Engine.Stats.Turns
	w.Pass(time.Second)
	if n := w.A.Engine.Stats.Turns - turns; n > 3000 {
		t.Errorf("%d turns in a second with a port that takes nothing", n)
	}
}
