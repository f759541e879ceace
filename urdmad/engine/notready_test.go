package engine_test

import (
	"testing"
	"time"

	"urdma/dpdk/linked"
	"urdma/urdmad/engine/enginetest"
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
			both(t, func(t *testing.T, local bool) { lateReceives(t, local, c.retries, c.timer, c.late, c.path) })
		})
	}
}

func lateReceives(t *testing.T, local bool, retries uint8, timer uint32, late time.Duration, path linked.Path) {
	const messages, size = 40, 9000
	w := enginetest.New(t, enginetest.Options{Seed: 7, Path: path})
	a, b := w.Pair(local, nil)
	b.Q.Connection().RNRRetry, b.Q.Attr.MinRNRTimer = retries, timer
	src, in, good := a.Client.Register(messages*size, rw), b.Client.Register(messages*size, rw), b.Client.Register(8, rw)
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
	if good.Bytes[0] != 0 {
		t.Fatal("a Write overtook the messages in front of it")
	}
	for i := range messages {
		b.PostRecv(uint64(i), in.SGE(i*size, size))
		if i%3 == 0 {
			w.Pass(500 * time.Microsecond)
		}
	}
	for i, e := range completions(w, b.Recv, messages) {
		if e.WRID != uint64(i) || e.Status != abi.StatusSuccess || e.ByteLen != size || in.Bytes[i*size+size-1] != byte(i) {
			t.Fatalf("receive %d: %+v", i, e)
		}
	}
	for i, e := range completions(w, a.Send, messages+1) {
		if e.WRID != uint64(i) || e.Status != abi.StatusSuccess {
			t.Fatalf("send %d: %+v", i, e)
		}
	}
	if good.Bytes[0] != 1 {
		t.Error("the Write behind the messages did not arrive")
	}
}
