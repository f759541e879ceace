package reliabletest

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"

	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

// crowd creates streams like sharing, with connections as trp sets them up: random first PSNs, and idle ends
// that send probes.
func crowd(n int, link Link, seed uint64) (all []*stream) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for i := range n {
		cfg := reliable.Config{Window: 1024, RecvWindow: 1024, PeerWindow: 1024, KeepAlive: 2 * reliable.Second}
		cfg.LocalISN, cfg.PeerISN = wire.PSN(rng.Uint32()), wire.PSN(rng.Uint32())
		peer := cfg
		peer.LocalISN, peer.PeerISN = cfg.PeerISN, cfg.LocalISN
		s := newStreamBetween(seed+uint64(i), link, cfg, peer)
		if i > 0 {
			s.Links[0] = all[0].Links[0]
		}
		all = append(all, s)
	}
	return all
}

// until runs streams that share links until time end, event by event.
func until(all []*stream, end reliable.Time) error {
	h := slices.Clone(streamHeap(all))
	for heap.Init(&h); len(h) > 0; {
		next := h[0]
		if len(next.events) == 0 || next.events[0].at > end {
			return nil
		}
		before := next.Events
		if err := next.Run(reliable.Never, func() bool { return next.Events > before }); err != nil {
			return err
		}
		heap.Fix(&h, 0)
	}
	return nil
}

// streamHeap is a heap of streams, the one with the earliest event first.
type streamHeap []*stream

func (h streamHeap) Len() int           { return len(h) }
func (h streamHeap) Less(i, j int) bool { return h[i].next() < h[j].next() }
func (h streamHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *streamHeap) Push(x any)        { *h = append(*h, x.(*stream)) }
func (h *streamHeap) Pop() any          { panic("no stream ends") }

func (s *stream) next() reliable.Time {
	if len(s.events) == 0 {
		return reliable.Never
	}
	return s.events[0].at
}

// shares has the results of streams that share a link.
type shares struct {
	resent  float64 // of the sent segments
	goodput float64 // of the link
	least   float64 // share of the stream with the least, 1 if all have the same
}

func sharesOf(all []*stream, took reliable.Time) shares {
	var sent, resent, delivered uint64
	least := ^uint64(0)
	for _, s := range all {
		st := s.stats()
		sent, resent, delivered = sent+st.Sent, resent+st.Resent, delivered+s.Peers[1].Delivered
		least = min(least, s.Peers[1].Delivered)
	}
	bits := float64(delivered) * float64(all[0].size) * 8
	return shares{
		resent:  float64(resent) / float64(sent),
		goodput: bits / all[0].rate / (float64(took) / 1e9),
		least:   float64(least) * float64(len(all)) / float64(delivered),
	}
}

// TestCrowd: several streams share a queue of 64 KB, which holds a few segments of each. They fill the link
// without resending most segments, and each gets a share.
func TestCrowd(t *testing.T) {
	const took = reliable.Second
	for _, c := range []struct {
		streams, size int
		delay         reliable.Time
		most          float64 // of the sent segments
	}{
		{8, 1500, 5 * us, 0.15}, {8, 1500, 25 * us, 0.15}, {8, 1500, 500 * us, 0.05},
		{8, 4096, 25 * us, 0.35}, {8, 4096, 500 * us, 0.10}, {16, 1500, 25 * us, 0.30},
	} {
		for seed := range uint64(2) {
			all := crowd(c.streams, Link{Rate: 1e9, Size: c.size, Delay: c.delay, Queue: 64 << 10,
				Jitter: reliable.Time(seed) * us}, 1+100*seed)
			if err := until(all, took); err != nil {
				t.Fatalf("%d streams of %d bytes, %d µs: %v", c.streams, c.size, c.delay/us, err)
			}
			got := sharesOf(all, took)
			t.Logf("%2d streams of %d bytes, %3d µs, seed %d: %+.3f", c.streams, c.size, c.delay/us, seed, got)
			if got.resent > c.most || got.goodput < 0.95 || got.least < 0.08 {
				t.Errorf("want %.2f resent at most, 0.95 of the link and 0.08 for the least", c.most)
			}
		}
	}
}

// TestCrowdedOut: more streams share a queue than it holds segments. A stream that starts late finds the queue
// almost always full, but does not end because of that.
func TestCrowdedOut(t *testing.T) {
	for _, streams := range []int{8, 16} {
		for seed := range uint64(2) {
			all := crowd(streams, Link{Rate: 1e9, Size: 9000, Delay: 25 * us, Queue: 64 << 10, Jitter: 3 * us}, 1+100*seed)
			if err := until(all, 10*reliable.Second); err != nil {
				t.Errorf("%d streams, seed %d: after %d ms: %v", streams, seed, all[0].Now/ms, err)
			}
			t.Logf("%2d streams, seed %d: %+.3f", streams, seed, sharesOf(all, 10*reliable.Second))
		}
	}
}
