package engine_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// fillPort has more packets wait at B's port than a turn takes, and returns the stream
// that sent them.
func fillPort(w *enginetest.World) *bulk {
	k := newBulk(w)
	w.Until("all is sent", time.Second, func() bool { k.completed += len(k.q.Send.Poll()); return k.completed == bulkDepth })
	for range bulkDepth {
		k.post()
	}
	for range 20 { // the other host looks elsewhere
		w.A.Engine.Turn(w.Now())
		w.Net.Advance(int64(w.Now()) + 500)
	}
	return k
}

// TestFaultBetweenBursts: a message that is sent between two bursts, to memory that
// cannot be touched, takes no other queue pair's bell with it.
func TestFaultBetweenBursts(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 96})
	from := w.B.NewClient()
	var pairs [2]*enginetest.QP
	var sinks [2]*enginetest.Region
	for i := range pairs {
		pairs[i] = from.NewQP(nil)
		to := w.B.NewClient().NewQP(nil)
		enginetest.Join(pairs[i], to, 4)
		sinks[i] = to.Client.Register(4096, enginetest.ReadWrite)
	}
	source := from.Register(4096, enginetest.ReadWrite)
	fillPort(w)
	forbid(t, sinks[0])
	for i, q := range pairs {
		q.Post(enginetest.Write(1, sinks[i], 0), source.SGE(0, 64))
	}
	w.B.Engine.Turn(w.Now())
	if n := len(sinks[0].Client.Faults); n != 1 {
		t.Fatalf("the faulty client was reported %d times", n)
	}
	if e := pairs[1].Send.Completions(1)[0]; e.Status != abi.StatusSuccess {
		t.Errorf("the other Write: %+v", e)
	}
}

// TestManyPostsBetweenBursts: queue pairs whose sends wait for nobody, and so never have
// any under way, hold up a port no longer than a burst of packets takes.
func TestManyPostsBetweenBursts(t *testing.T) {
	const burst, posts = 32, 32
	w := enginetest.New(t, enginetest.Options{Seed: 97})
	tap := enginetest.Record(t, w.B)
	c, to := w.B.NewClient(), w.A.NewClient().NewDatagramQP(enginetest.QKey)
	source := c.Register(64, enginetest.ReadWrite)
	var all []*enginetest.QP
	post := func(q *enginetest.QP) {
		q.Post(enginetest.To(enginetest.Send(1), w.A.Addr, to.Q.QPN, enginetest.QKey), source.SGE(0, 8))
	}
	for range 64 {
		all = append(all, c.NewDatagramQP(enginetest.QKey))
	}
	post(all[0]) // finds out where the neighbour is
	all[0].Send.Completions(1)
	fillPort(w)
	for i, q := range all {
		for n := 0; n < posts && (n < 1 || i%2 == 0); n++ { // many, and one
			post(q)
		}
	}
	tap.Frames = tap.Frames[:0]
	w.B.Engine.Turn(w.Now())
	in, out := 0, 0
	for i := range tap.Frames {
		switch f := &tap.Frames[i]; {
		case f.Local:
		case f.Out:
			out++
		default:
			if in%burst == 0 && out > burst {
				t.Errorf("%d packets left between burst %d and the next", out, in/burst)
			}
			in, out = in+1, 0
		}
	}
	if in != 4*burst {
		t.Errorf("a turn took %d packets, want %d", in, 4*burst)
	}
}

// TestFaultyReceiver: a datagram to memory that cannot be touched is lost, and holds up
// none behind it.
func TestFaultyReceiver(t *testing.T) {
	w := enginetest.New(t, enginetest.Options{Seed: 98})
	from := w.B.NewClient().NewDatagramQP(enginetest.QKey)
	source := from.Client.Register(64, enginetest.ReadWrite)
	var to [2]*enginetest.QP
	var sinks [2]*enginetest.Region
	for i := range to {
		to[i] = w.B.NewClient().NewDatagramQP(enginetest.QKey)
		sinks[i] = to[i].Client.Register(4096, enginetest.ReadWrite)
		to[i].PostRecv(uint64(i), sinks[i].SGE(0, 4096))
	}
	forbid(t, sinks[0])
	for i := range to {
		from.Post(enginetest.To(enginetest.Send(uint64(i)), w.B.Addr, to[i].Q.QPN, enginetest.QKey), source.SGE(0, 64))
	}
	for _, e := range from.Send.Completions(2) {
		if e.Status != abi.StatusSuccess {
			t.Errorf("a datagram: %+v", e)
		}
	}
	to[1].Recv.Completions(1)
	if n := len(to[0].Client.Faults); n != 1 {
		t.Errorf("the faulty client was reported %d times", n)
	}
}

// forbid makes a region of 4096 bytes memory that cannot be touched.
func forbid(t *testing.T, r *enginetest.Region) {
	t.Helper()
	b := r.Region.Bytes(r.Base(), 4096)
	if err := unix.Mprotect(b, unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE) })
}
