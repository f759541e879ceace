package engine_test

import (
	"slices"
	"testing"
	"time"

	"urdma/test/linked"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/engine/enginetest"
)

// bulk keeps Writes of 64 KiB under way on a queue pair.
type bulk struct {
	q         *enginetest.QP
	from, to  *enginetest.Region
	completed int
}

const bulkSize, bulkDepth = 64 << 10, 16

func newBulk(w *enginetest.World) *bulk {
	a, b := w.Pair(false, nil)
	k := &bulk{q: a, from: a.Client.Register(bulkSize, enginetest.ReadWrite),
		to: b.Client.Register(bulkSize, enginetest.ReadWrite)}
	for range bulkDepth {
		k.post()
	}
	return k
}

func (k *bulk) post() { k.q.Post(enginetest.Write(1, k.to, 0), k.from.SGE(0, bulkSize)) }

// goOn posts anew what has completed.
func (k *bulk) goOn() {
	if k == nil {
		return
	}
	for range k.q.Send.Poll() {
		k.completed++
		k.post()
	}
}

// roundTrip is the median of how long a Write of 8 bytes takes until it completes,
// one after the other.
func roundTrip(w *enginetest.World, beside *bulk) clock.Time {
	const rounds, settled = 150, 75
	a, b := w.Pair(false, nil)
	from, to := a.Client.Register(64, enginetest.ReadWrite), b.Client.Register(64, enginetest.ReadWrite)
	var took []clock.Time
	for i := range rounds {
		began := w.Now()
		a.Post(enginetest.Write(uint64(i), to, 0), from.SGE(0, 8))
		w.Until("a Write of 8 bytes completes", time.Second, func() bool {
			beside.goOn()
			return len(a.Send.Poll()) > 0
		})
		if i >= settled {
			took = append(took, w.Now()-began)
		}
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// TestSmallBesideBulk: messages of one segment, one after the other, wait ten times as
// long beside a stream of long ones as alone, at most, and the stream goes on.
func TestSmallBesideBulk(t *testing.T) {
	path := linked.Path{Delay: time.Microsecond, Rate: 40e9}
	alone := roundTrip(enginetest.New(t, enginetest.Options{Seed: 91, Path: path}), nil)
	w := enginetest.New(t, enginetest.Options{Seed: 91, Path: path})
	k := newBulk(w)
	w.Pass(5 * time.Millisecond)
	k.goOn()
	began, before := w.Now(), k.completed
	beside := roundTrip(w, k)
	used := float64(k.completed-before) * bulkSize * 8 / 40e9 / (float64(w.Now()-began) / 1e9)
	t.Logf("alone %d ns, beside bulk %d ns, which uses %.2f of the link", alone, beside, used)
	if beside > 10*alone {
		t.Errorf("%d ns alone, %d ns beside bulk", alone, beside)
	}
	if used < 0.8 {
		t.Errorf("bulk uses %.2f of the link", used)
	}
}

// TestPostsWaitForABurst: a turn takes several bursts from a port. What a program posts
// one after the other leaves after the first, and the port has its other bursts all the
// same, or clients that post all the time would have its ring overflow.
func TestPostsWaitForABurst(t *testing.T) {
	const burst, bursts = 32, 4
	w := enginetest.New(t, enginetest.Options{Seed: 92})
	tap := enginetest.Record(t, w.B)
	k := newBulk(w)
	to, small := w.Pair(false, nil)
	from, at := small.Client.Register(64, enginetest.ReadWrite), to.Client.Register(64, enginetest.ReadWrite)
	w.Until("all is sent", time.Second, func() bool { k.completed += len(k.q.Send.Poll()); return k.completed == bulkDepth })
	for range 2 { // turns in a row
		for range bulkDepth {
			k.post()
		}
		for range 20 { // the other host looks elsewhere
			w.A.Engine.Turn(w.Now())
			w.Net.Advance(int64(w.Now()) + 500)
		}
		small.Post(enginetest.Write(1, at, 0), from.SGE(0, 8))
		tap.Frames = tap.Frames[:0]
		w.B.Engine.Turn(w.Now())
		if got := len(tap.Went(false)); got != burst*bursts {
			t.Errorf("a turn took %d packets, want %d", got, burst*bursts)
		}
		before := slices.IndexFunc(tap.Frames,
			func(f enginetest.Seen) bool { return f.Out && f.Conn != nil && f.Conn.QP == small.Q })
		if before != burst {
			t.Errorf("what was posted left behind %d packets, want %d", before, burst)
		}
		w.Until("it completes", time.Second, func() bool { k.completed += len(k.q.Send.Poll()); return len(small.Send.Poll()) > 0 })
	}
}

// TestPostsDontStarvePorts: what streams post without end, either way, between the bursts
// of a turn waits for the turn's end, and no more is dropped than if it were posted there.
func TestPostsDontStarvePorts(t *testing.T) {
	const size, messages = 8 << 10, 4000
	w := enginetest.New(t, enginetest.Options{Seed: 95, Path: linked.Path{Delay: time.Microsecond}})
	var all []*bulk
	for range 8 {
		a, b := w.Pair(false, nil)
		for _, d := range [][2]*enginetest.QP{{a, b}, {b, a}} {
			all = append(all, &bulk{q: d[0], from: d[0].Client.Register(size, enginetest.ReadWrite),
				to: d[1].Client.Register(size, enginetest.ReadWrite)})
		}
	}
	post := func(k *bulk, n int) {
		for range n {
			k.q.Post(enginetest.Write(1, k.to, 0), k.from.SGE(0, size))
		}
	}
	for _, k := range all {
		post(k, bulkDepth)
	}
	completed := 0
	w.Until("all have sent much", time.Second, func() bool {
		for _, k := range all {
			n := len(k.q.Send.Poll())
			post(k, n)
			completed += n
		}
		return completed >= messages
	})
	a, b := w.A.Port.Stats(), w.B.Port.Stats()
	t.Logf("dropped %d and %d of %d packets", a.RxDropped, b.RxDropped, a.RxPackets+b.RxPackets)
	if a.RxDropped+b.RxDropped > 50 {
		t.Errorf("%d and %d packets dropped", a.RxDropped, b.RxDropped)
	}
}
