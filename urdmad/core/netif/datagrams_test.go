package netif_test

import (
	"testing"
	"time"

	"urdma/urdmad/core/engine/enginetest"
)

// TestDatagrams: traffic over ports that carry datagrams, without the headers of a frame.
func TestDatagrams(t *testing.T) {
	for seed := uint64(1); seed <= enginetest.Seeds(5); seed++ {
		w := enginetest.New(t, enginetest.Options{Seed: seed, Datagrams: true})
		a, b := w.Pair(false, nil)
		w.NewTraffic(a, b, enginetest.Load{Ops: 100, MaxSize: 40000}).Run(120 * time.Second)
		if w.PipeA.Padded == 0 || w.PipeB.Padded == 0 {
			t.Errorf("seed %d: %d and %d datagrams with padding", seed, w.PipeA.Padded, w.PipeB.Padded)
		}
	}
}

// TestSpoiledBatches: both hosts detect that only the first datagram of a batch arrives; a host whose path
// was interrupted for a moment continues with batches. The detection is statistical: of a hundred hosts, a
// few may not have finished when the traffic ends.
func TestSpoiledBatches(t *testing.T) {
	seeds, undecided := enginetest.Seeds(5), uint64(0)
	for seed := uint64(1); seed <= seeds; seed++ {
		w := enginetest.New(t, enginetest.Options{Seed: seed, Datagrams: true})
		w.PipeA.FirstOnly, w.PipeB.FirstOnly = true, true
		a, b := w.Pair(false, nil)
		w.NewTraffic(a, b, enginetest.Load{Ops: 400, MaxSize: 40000}).Run(120 * time.Second)
		for _, h := range []*enginetest.Host{w.A, w.B} {
			switch n := h.Engine.Interface(0).Batches.Alone(w.Now()); n {
			case 0:
				undecided++
			case 1:
			default:
				t.Errorf("seed %d: one by one to %d peers", seed, n)
			}
		}
	}
	if undecided > 2*seeds/100 {
		t.Errorf("%d of %d hosts send together what arrives only one by one", undecided, 2*seeds)
	}
}
