package engine_test

import (
	"slices"
	"testing"
	"time"

	"urdma/dpdk/linked"
	"urdma/urdmad/clock"
	"urdma/urdmad/engine/enginetest"
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
	k := &bulk{q: a, from: a.Client.Register(bulkSize, rw), to: b.Client.Register(bulkSize, rw)}
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
	from, to := a.Client.Register(64, rw), b.Client.Register(64, rw)
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

// TestPostsWaitForABurst: a turn takes several bursts from a port, but one only if
// somebody has posted something: that is not to wait for the others.
func TestPostsWaitForABurst(t *testing.T) {
	const burst = 32
	w := enginetest.New(t, enginetest.Options{Seed: 92})
	k := newBulk(w)
	b := w.B.NewClient().NewQP(nil)
	for _, posts := range []bool{false, true} {
		w.Until("all is sent", time.Second, func() bool { k.completed += len(k.q.Send.Poll()); return k.completed%bulkDepth == 0 })
		for range bulkDepth {
			k.post()
		}
		for range 20 { // the other host looks elsewhere
			w.A.Engine.Turn(w.Now())
			w.Net.Advance(int64(w.Now()) + 500)
		}
		if posts {
			b.Bell()
		}
		before := w.B.Port.Stats().RxPackets
		w.B.Engine.Turn(w.Now())
		if got := w.B.Port.Stats().RxPackets - before; posts != (got == burst) || got < burst {
			t.Errorf("posted %v: a turn took %d packets", posts, got)
		}
	}
}

// TestPostsDontStarvePorts: of a client that posts in every turn only every second one
// is cut short; else the rings of busy ports would overflow.
func TestPostsDontStarvePorts(t *testing.T) {
	const burst = 32
	w := enginetest.New(t, enginetest.Options{Seed: 93})
	k := newBulk(w)
	b := w.B.NewClient().NewQP(nil)
	w.Until("all is sent", time.Second, func() bool { k.completed += len(k.q.Send.Poll()); return k.completed == bulkDepth })
	for range bulkDepth {
		k.post()
	}
	for range 20 { // the other host looks elsewhere
		w.A.Engine.Turn(w.Now())
		w.Net.Advance(int64(w.Now()) + 500)
	}
	var took []uint64
	for range 2 {
		b.Bell()
		before := w.B.Port.Stats().RxPackets
		w.B.Engine.Turn(w.Now())
		took = append(took, w.B.Port.Stats().RxPackets-before)
	}
	if took[0] != burst || took[1] <= burst {
		t.Errorf("with bells in every turn they took %d packets", took)
	}
}
