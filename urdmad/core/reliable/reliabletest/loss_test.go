package reliabletest

import (
	"math/rand/v2"
	"testing"

	"urdma/urdmad/core/reliable"
)

// naps makes both peers sleep from time to time, as ends that share cores with others do, for times that vary
// around mean, with pauses of half of that.
func (s *stream) naps(mean reliable.Time) {
	r := rand.New(rand.NewPCG(5, 5))
	var nap func()
	nap = func() {
		d := reliable.Time(r.ExpFloat64() * float64(mean))
		s.Pause(r.IntN(2), d)
		s.At(s.Now+d+reliable.Time(r.ExpFloat64()*float64(mean)/2), nap)
	}
	s.At(s.Now, nap)
}

// TestLossBesideNaps: if suspended ends make round trips long, independent loss costs no more than resending
// the lost segments.
func TestLossBesideNaps(t *testing.T) {
	goodput := func(loss float64, mean reliable.Time) float64 {
		s := newStream(1, Link{Rate: 12e9, Size: 1500, Delay: 10 * us, Faults: Faults{Loss: loss}})
		s.naps(mean)
		s.run(t, 30*ms)
		got := s.run(t, 60*ms)
		t.Logf("loss %.2f, naps of %d µs: goodput %.2f, %+v", loss, mean/us, got, s.stats())
		return got
	}
	for _, mean := range []reliable.Time{100 * us, 400 * us} {
		without := goodput(0, mean)
		for loss, least := range map[float64]float64{0.01: 0.9, 0.05: 0.8} {
			if got := goodput(loss, mean); got < least*without {
				t.Errorf("naps of %d µs: loss of %.2f keeps %.2f of the goodput, want %.2f", mean/us, loss, got/without, least)
			}
		}
	}
}

// TestLossWithSlowTurns: where the ends' turns take longer than the queue that congestion control tolerates,
// every round trip looks as if it met a queue. Random loss then must not shrink the window, which would make
// the turns' work for each segment grow.
func TestLossWithSlowTurns(t *testing.T) {
	goodput := func(loss float64, delay reliable.Time) float64 {
		const window = 2048
		s := newStreamOf(1, Link{Rate: 50e9, Size: 1500, Delay: delay, Faults: Faults{Loss: loss}},
			reliable.Config{Window: window, RecvWindow: window, PeerWindow: window, Batches: true})
		s.TurnTakes, s.PacketTakes = 40*us, 300
		s.run(t, 30*ms)
		got := s.run(t, 60*ms)
		t.Logf("loss %.3f, %d µs: goodput %.3f, %+v", loss, delay/us, got, s.stats())
		return got
	}
	for _, delay := range []reliable.Time{10 * us, 25 * us} {
		without := goodput(0, delay)
		for _, loss := range []float64{0.001, 0.01, 0.05} {
			kept := goodput(loss, delay) / (without * (1 - loss))
			t.Logf("%d µs: loss of %.3f keeps %.2f of the ideal goodput", delay/us, loss, kept)
			if kept < 0.7 {
				t.Errorf("%d µs: want 0.7", delay/us)
			}
		}
	}
}

// TestOverflowIsNoChance: loss by an overflowing queue does not count as random loss of the path, also not for a
// stream that starts later: otherwise both would continue at their rate, and more would be lost.
func TestOverflowIsNoChance(t *testing.T) {
	for _, c := range []struct {
		streams int
		queue   int
		most    float64 // of the sent segments
	}{{2, 128 << 10, 0.06}, {4, 256 << 10, 0.07}} {
		all := sharing(c.streams, Link{Rate: 10e9, Size: 1500, Delay: 25 * us, Queue: c.queue})
		together(t, all, 100*ms)
		var sent, resent, delivered uint64
		for _, s := range all {
			st := s.stats()
			sent, resent, delivered = sent+st.Sent, resent+st.Resent, delivered+s.Peers[1].Delivered
		}
		part, goodput := float64(resent)/float64(sent), float64(delivered)*1500*8/10e9/0.1
		t.Logf("%d streams, a queue of %d bytes: %.3f resent, goodput %.2f", c.streams, c.queue, part, goodput)
		if part > c.most || goodput < 0.95 {
			t.Errorf("%d streams, a queue of %d bytes: %.3f resent, want %.3f at most; goodput %.2f", c.streams, c.queue, part,
				c.most, goodput)
		}
	}
}

// sharing makes streams with one queue before all of them.
func sharing(n int, link Link) (all []*stream) {
	for i := range n {
		s := newStream(uint64(i+1), link)
		if i > 0 {
			s.Links[0] = all[0].Links[0]
		}
		all = append(all, s)
	}
	return all
}

// together runs streams that share a link at the same time.
func together(t *testing.T, all []*stream, d reliable.Time) {
	t.Helper()
	for now := reliable.Time(0); now < d; now += 2 * us {
		for _, s := range all {
			stop := false
			s.At(now, func() { stop = true })
			if err := s.Run(reliable.Never, func() bool { return stop }); err != nil {
				t.Fatal(err)
			}
		}
	}
}
