package samehost_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestWithItself: a queue pair may be its own peer.
func TestWithItself(t *testing.T) {
	n := enginetest.NewNumberPair(t, true, linked.Path{})
	n.QA.ReadyToReceive(n.QA, enginetest.Attempt)
	n.QA.ReadyToSend(enginetest.Attempt)
	n.QA.PostRecv(1, n.MA.SGE(5000, 50))
	n.QA.Post(enginetest.Send(2), n.MA.SGE(0, 50))
	n.QA.Recv.Completions(1)
	n.QA.Send.Completions(1)
	if !bytes.Equal(n.MA.Bytes[:50], n.MA.Bytes[5000:5050]) {
		t.Error("bytes differ")
	}
}

// TestNotReadyBlamesTheSend: a Send without a receive fails when its time is over, but not a Write before it whose
// completion waits for the peer's answer (samehost/delay.go).
func TestNotReadyBlamesTheSend(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		n := enginetest.NewConnectedPair(t, local, linked.Path{}, 0)
		for range 6 {
			n.QA.Post(enginetest.Write(1, n.MB, 0), n.MA.SGE(0, 8))
			n.Turn()
			n.QB.Post(enginetest.Write(1, n.MA, 64), n.MB.SGE(0, 8))
			n.Turn()
		}
		n.Pass(10 * time.Microsecond)
		n.QA.Send.Poll()
		n.QA.Post(enginetest.Write(10, n.MB, 0), n.MA.SGE(0, 8))
		n.Turn()
		n.QA.Post(enginetest.Send(11), n.MA.SGE(0, 8))
		n.QA.Post(enginetest.Send(12), n.MA.SGE(0, 8))
		want := []uint32{abi.StatusSuccess, abi.StatusRNRRetryExcErr, abi.StatusWRFlushErr}
		if got := n.QA.Send.Statuses(10, 3); !slices.Equal(got, want) {
			t.Errorf("statuses %d, expected %d", got, want)
		}
	})
}

// TestRefusalBlamesItsOwn: a refused Write fails, but not a Read before it whose bytes are still being written to the
// program's memory.
func TestRefusalBlamesItsOwn(t *testing.T) {
	n := enginetest.NewConnectedPair(t, true, linked.Path{}, 7)
	slow := n.QA.Client.RegisterFallback(4096, enginetest.ReadWrite)
	n.QA.Post(enginetest.Read(10, n.MB, 0), slow.SGE(0, 4096))
	n.QA.Post(enginetest.Write(11, n.MB, len(n.MB.Bytes)), n.MA.SGE(0, 8))
	want := []uint32{abi.StatusWRFlushErr, abi.StatusRemAccessErr}
	if got := n.QA.Send.Statuses(10, 2); !slices.Equal(got, want) {
		t.Errorf("statuses %d, expected %d", got, want)
	}
}

// TestCut: while the link is down work waits, an idle connection remains, and both continue afterwards. If the link
// is down for the death time-out, the oldest work fails.
func TestCut(t *testing.T) {
	n := enginetest.NewConnectedPair(t, true, linked.Path{}, 7)
	cut := func(down bool) { n.A.Engine.SameHost.SetCut(0, down) }
	cut(true)
	n.Pass(time.Hour) // idle
	n.QB.PostRecv(5, n.MB.SGE(0, 64))
	n.QA.Post(enginetest.Read(10, n.MB, 0), n.MA.SGE(0, 64))
	n.QA.Post(enginetest.Send(11), n.MA.SGE(0, 64))
	n.Pass(200 * time.Millisecond)
	n.QA.Bell()
	n.Pass(200 * time.Millisecond)
	if done := append(n.QA.Send.Poll(), n.QB.Recv.Poll()...); len(done) != 0 {
		t.Fatalf("%+v completed over a link that is down", done)
	}
	cut(false)
	if got, want := n.QA.Send.Statuses(10, 2), []uint32{abi.StatusSuccess, abi.StatusSuccess}; !slices.Equal(got, want) {
		t.Fatalf("statuses %d, expected %d", got, want)
	}
	n.QB.Recv.Completions(1)
	cut(true)
	n.QB.PostRecv(6, n.MB.SGE(0, 64))
	n.QA.Post(enginetest.Write(20, n.MB, 0), n.MA.SGE(0, 64))
	n.QA.Post(enginetest.Send(21), n.MA.SGE(0, 64))
	if got, want := n.QA.Send.Statuses(20, 2),
		[]uint32{abi.StatusRetryExcErr, abi.StatusWRFlushErr}; !slices.Equal(got, want) {
		t.Errorf("statuses %d, expected %d", got, want)
	}
	if n.QA.Q.State() != abi.QPSErr {
		t.Errorf("state %d", n.QA.Q.State())
	}
	cut(false)
}
