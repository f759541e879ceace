package qp_test

import (
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/engine/enginetest"
	"urdma/verbs/abi"
)

// TestMessagesWaitForReceives: messages sent before a receive is posted arrive
// once it is, in order and whole, with Writes behind them, as rnr_retry_count
// allows.
func TestMessagesWaitForReceives(t *testing.T) {
	cases := []struct {
		name    string
		retries uint8
		timer   uint32 // min_rnr_timer
		late    time.Duration
		path    linked.Path
	}{
		{"for ever", 7, 0, 20 * time.Second, linked.Path{}},
		{"for ever, lossy", 7, 0, 3 * time.Second, linked.Path{Loss: 0.05, Reorder: 0.1, Delay: 10 * time.Microsecond}},
		{"a moment", 0, 0, 50 * time.Millisecond, linked.Path{}},
		{"twice 246 ms", 2, 29, 450 * time.Millisecond, linked.Path{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			enginetest.Both(t, func(t *testing.T, local bool) { lateReceives(t, local, c.retries, c.timer, c.late, c.path) })
		})
	}
}

func lateReceives(t *testing.T, local bool, retries uint8, timer uint32, late time.Duration, path linked.Path) {
	const messages, size = 40, 9000
	w := enginetest.New(t, enginetest.Options{Seed: 7, Path: path})
	a, b := w.Pair(local, nil)
	b.Q.Connection().RNRRetry, b.Q.Attr.MinRNRTimer = retries, timer
	src, in, good := a.Client.Register(messages*size, enginetest.ReadWrite),
		b.Client.Register(messages*size, enginetest.ReadWrite), b.Client.Register(8, enginetest.ReadWrite)
	for i := range src.Bytes {
		src.Bytes[i] = byte(i / size)
	}
	for i := range messages {
		a.Post(enginetest.Send(uint64(i)), src.SGE(i*size, size))
	}
	a.Post(enginetest.Write(messages, good, 0), src.SGE(size, 8))
	w.Pass(late)
	if b.Q.State() != abi.QPSRTS {
		t.Fatalf("receiver's state %d after %v", b.Q.State(), late)
	}
	if !b.Q.Unready() || a.Q.Unready() {
		t.Errorf("a message came before a receive was posted: receiver %t, sender %t", b.Q.Unready(), a.Q.Unready())
	}
	if good.Bytes[0] != 0 {
		t.Fatal("a Write overtook the messages in front of it")
	}
	for i := range messages {
		b.PostRecv(uint64(i), in.SGE(i*size, size))
		if i%3 == 0 {
			w.Pass(500 * time.Microsecond)
		}
	}
	for i, e := range b.Recv.Completions(messages) {
		if e.WRID != uint64(i) || e.Status != abi.StatusSuccess || e.ByteLen != size || in.Bytes[i*size+size-1] != byte(i) {
			t.Fatalf("receive %d: %+v", i, e)
		}
	}
	for i, e := range a.Send.Completions(messages + 1) {
		if e.WRID != uint64(i) || e.Status != abi.StatusSuccess {
			t.Fatalf("send %d: %+v", i, e)
		}
	}
	if good.Bytes[0] != 1 {
		t.Error("the Write behind the messages did not arrive")
	}
}

// TestReceivedBeforeAWaitingMessage: a send completes once its receive has it, whatever
// the message behind it waits for.
func TestReceivedBeforeAWaitingMessage(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		n := enginetest.NewConnectedPair(t, local, linked.Path{}, 7)
		n.QA.Post(enginetest.Send(10), n.MA.SGE(0, 64))
		n.QA.Post(enginetest.Send(11), n.MA.SGE(0, 64))
		n.Pass(50 * time.Millisecond)
		n.QB.PostRecv(1, n.MB.SGE(0, 64))
		n.Pass(100 * time.Millisecond)
		if got := n.QA.Send.Poll(); len(n.QB.Recv.Poll()) != 1 || len(got) != 1 || got[0].Status != abi.StatusSuccess {
			t.Errorf("completed: %+v", got)
		}
	})
}

// TestEachMessageWaits: a receiver that lags behind, but never for longer than a message
// may wait, gets all of them.
func TestEachMessageWaits(t *testing.T) {
	const messages = 30
	enginetest.Both(t, func(t *testing.T, local bool) {
		for name, path := range map[string]linked.Path{"whole": {}, "lossy": enginetest.Lossy} {
			n := enginetest.NewConnectedPair(t, local, path, 6) // with min_rnr_timer 12 that is 3.84 ms
			byCM := enginetest.New(t, enginetest.Options{Seed: 40, Path: path})
			a, b := byCM.Pair(local, nil)
			for how, c := range map[string]struct {
				*enginetest.NumberPair
				each time.Duration
			}{
				"by number": {n, 2 * time.Millisecond},
				"rdma_cm": {&enginetest.NumberPair{World: byCM, QA: a, QB: b, MA: a.Client.Register(64, enginetest.ReadWrite),
					MB: b.Client.Register(64, enginetest.ReadWrite)}, 10 * time.Millisecond},
			} {
				for i := range messages {
					c.QA.Post(enginetest.Send(uint64(i)), c.MA.SGE(0, 64))
				}
				for i := range messages {
					c.Pass(c.each)
					c.QB.PostRecv(uint64(i), c.MB.SGE(0, 64))
				}
				for i, s := range c.QA.Send.Statuses(0, messages) {
					if s != abi.StatusSuccess {
						t.Errorf("%s, %s: send %d has status %d", name, how, i, s)
						break
					}
				}
			}
		}
	})
}

// TestRNRRetry: a message without a receive fails its sender alone when
// rnr_retry and the receiver's min_rnr_timer say so, and never with 7.
func TestRNRRetry(t *testing.T) {
	enginetest.Both(t, func(t *testing.T, local bool) {
		for _, retry := range []uint32{0, 3, 7} {
			n := enginetest.NewNumberPair(t, local, linked.Path{})
			a := enginetest.Attempt
			a.RNRRetry, a.MinRNRTimer = retry, 29 // 245.76 ms
			for _, q := range [][2]*enginetest.QP{{n.QA, n.QB}, {n.QB, n.QA}} {
				q[0].ReadyToReceive(q[1], a)
				q[0].ReadyToSend(a)
			}
			n.Exchange(100)
			n.QA.Post(enginetest.Send(8), n.MA.SGE(0, 10))
			start := n.Now()
			if retry == 7 {
				n.Pass(20 * time.Second)
				n.QB.PostRecv(3, n.MB.SGE(0, 10))
				if e := n.QA.Send.Completions(1)[0]; e.Status != abi.StatusSuccess {
					t.Errorf("%+v", e)
				}
				continue
			}
			e, took := n.QA.Send.Completions(1)[0], time.Duration(n.Now()-start)
			want := time.Duration(retry) * 245760 * time.Microsecond
			if e.Status != abi.StatusRNRRetryExcErr || took < want || took > want+20*time.Millisecond {
				t.Errorf("rnr_retry %d: %+v after %v, expected %v", retry, e, took, want)
			}
			n.Pass(time.Second)
			if n.QB.Q.State() != abi.QPSRTS || len(n.QB.Recv.Poll()) != 0 {
				t.Errorf("the receiver is in state %d", n.QB.Q.State())
			}
		}
	})
}
