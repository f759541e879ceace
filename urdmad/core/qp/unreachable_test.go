package qp_test

import (
	"testing"
	"time"

	"urdma/reason"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// unreachableScene has a queue pair whose client has memory that is not there.
func unreachableScene(t *testing.T, local bool) (a, b *enginetest.QP, here, missing *enginetest.Region) {
	w := enginetest.New(t, enginetest.Options{Seed: 63})
	a, b = w.Pair(local, nil)
	here, missing = a.Client.Register(8192, enginetest.ReadWrite), a.Client.RegisterMissing(200000, enginetest.ReadWrite)
	return a, b, here, missing
}

// expectUnreachable expects that the second of three work requests failed for its memory.
func expectUnreachable(t *testing.T, a *enginetest.QP) {
	t.Helper()
	got := a.Send.Completions(3)
	enginetest.Expect(t, "sender", got, []uint64{1, 2, 3}, 0, abi.StatusLocProtErr, abi.StatusWRFlushErr)
	if why := reason.Number(got[1].VendorErr); why != reason.LocalUnreachable {
		t.Errorf("reason %v", why)
	}
}

// TestUnreachableSource: a work request whose source is not there fails with its own
// status, once those before it are done; those behind it are flushed.
func TestUnreachableSource(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		a, b, here, missing := unreachableScene(t, local)
		sink := b.Client.Register(200000, enginetest.ReadWrite)
		a.Post(enginetest.Write(1, sink, 0), here.SGE(0, 8192))
		a.Post(enginetest.Write(2, sink, 0), missing.SGE(0, 200000))
		a.Post(enginetest.Write(3, sink, 0), here.SGE(0, 8192))
		expectUnreachable(t, a)
	})
}

// TestUnreachableSourceInPart: as much, where the first bytes of the source are there.
func TestUnreachableSourceInPart(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		a, b, here, missing := unreachableScene(t, local)
		sink := b.Client.Register(200000, enginetest.ReadWrite)
		a.Post(enginetest.Write(1, sink, 0), here.SGE(0, 8192))
		a.Post(enginetest.Write(2, sink, 0), a.Client.RegisterFallback(100000, enginetest.ReadWrite).SGE(0, 100000),
			missing.SGE(0, 100000))
		a.Post(enginetest.Write(3, sink, 0), here.SGE(0, 8192))
		expectUnreachable(t, a)
	})
}

// TestUnreachableSink: a Read whose sink is not there fails with its own status.
func TestUnreachableSink(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		a, b, here, missing := unreachableScene(t, local)
		from := b.Client.Register(200000, enginetest.ReadWrite)
		a.Post(enginetest.Read(1, from, 0), here.SGE(0, 8192))
		a.Post(enginetest.Read(2, from, 0), missing.SGE(0, 200000))
		a.Post(enginetest.Read(3, from, 0), here.SGE(0, 8192))
		expectUnreachable(t, a)
	})
}

// TestUnreachableReceive: a receive whose memory is not there fails with its own status,
// also while its message is still arriving.
func TestUnreachableReceive(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		b, a, here, missing := unreachableScene(t, local)
		out := a.Client.Register(200000, enginetest.ReadWrite)
		for id := range uint64(2) {
			b.PostRecv(id+1, missing.SGE(0, 200000))
		}
		b.PostRecv(3, here.SGE(0, 8))
		a.Post(enginetest.Send(1), out.SGE(0, 200000))
		got := b.Recv.Completions(3)
		enginetest.Expect(t, "receiver", got, []uint64{1, 2, 3}, abi.StatusLocProtErr, abi.StatusWRFlushErr,
			abi.StatusWRFlushErr)
		if why := reason.Number(got[0].VendorErr); why != reason.LocalUnreachable {
			t.Errorf("reason %v", why)
		}
		b.Client.Event(abi.CMDisconnected, 2*time.Second)
	})
}
