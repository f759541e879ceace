package reliabletest

import (
	"os"
	"testing"

	"urdma/urdmad/core/reliable"
)

// fatLink has a rate of 10 Gb/s and a round trip of 50 ms.
func fatLink(size int, loss float64) Link {
	return Link{Rate: 10e9, Size: size, Delay: 25 * ms, Faults: Faults{Loss: loss}}
}

// newFatStream is newStream for peers with 20-bit credits, and with windows of that size.
func newFatStream(seed uint64, link Link) *stream {
	const window = reliable.MaxWindow
	return newStreamOf(seed, link, reliable.Config{Window: window, RecvWindow: window, PeerWindow: 1024,
		Batches: true})
}

// TestLongFatPath: a path that holds tens of thousands of segments is filled and stays filled, also with a
// little loss.
func TestLongFatPath(t *testing.T) {
	long := os.Getenv("URDMA_LONG") != ""
	for _, c := range []struct {
		name  string
		link  Link
		after reliable.Time // when it is filled
		least float64
		long  bool
	}{
		{"9,000 bytes", fatLink(9000, 0), 1000 * ms, 0.9, false},
		{"9,000 bytes, a loss in 100,000", fatLink(9000, 1e-5), 1000 * ms, 0.9, false},
		{"9,000 bytes, a loss in 1,000", fatLink(9000, 1e-3), 1500 * ms, 0.8, false},
		{"1,500 bytes", fatLink(1500, 0), 1000 * ms, 0.9, false},
		// the segments behind it and those in flight are more than a window
		{"1,500 bytes, a loss in 100,000", fatLink(1500, 1e-5), 1500 * ms, 0.85, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.long && !long {
				t.Skip("URDMA_LONG=1 runs it")
			}
			s := newFatStream(1, c.link)
			s.run(t, c.after)
			got := s.run(t, 250*ms)
			t.Logf("goodput %.3f, %+v", got, s.stats())
			if long {
				got = min(got, s.run(t, 10*reliable.Second))
				t.Logf("goodput %.3f, %+v", got, s.stats())
			}
			if got < c.least {
				t.Errorf("goodput is %.2f of the link, want %.2f", got, c.least)
			}
		})
	}
}

// TestLongPathOfOldPeers: if one peer has 12-bit credits, the window is at most 1,024, also on a path that is
// longer than the first timeout.
func TestLongPathOfOldPeers(t *testing.T) {
	for _, size := range []int{1500, 9000} {
		link := fatLink(size, 0)
		s := newBatchStream(1, link)
		s.run(t, 1000*ms)
		got := s.run(t, 500*ms) * link.Rate / 8 / float64(link.Size) * 0.05
		if got < 0.97*1024 || got > 1.03*1024 {
			t.Errorf("%d bytes: %.0f segments a round trip, want 1,024: %+v", size, got, s.stats())
		}
	}
}

// TestFirstFlightLost: if the first acknowledgement is for a segment sent twice, the other segments, which are
// lost, are not considered in flight for long. If each segment is resent before its acknowledgement can
// arrive, the timeout grows until one is not resent, and the round trip is measured.
func TestFirstFlightLost(t *testing.T) {
	for _, delay := range []reliable.Time{25 * us, 25 * ms} {
		s := newStream(1, Link{Rate: 10e9, Size: 1500, Delay: delay, Faults: Faults{Loss: 1}})
		s.Links[1].Loss = 0
		s.At(ms, func() { s.Links[0].Loss = 0 })
		s.run(t, 300*ms+100*delay)
		if st := s.stats(); st.MinRTT > 4*delay || st.MinRTT == 0 || st.Timeouts > 3 {
			t.Errorf("a path of %d µs: %+v", 2*delay/us, st)
		}
	}
}

// TestFatPathShortQueue: a queue that holds an eighth of the segments in flight overflows when slow start
// exceeds the path's capacity; the losses are repaired, and the path is filled.
func TestFatPathShortQueue(t *testing.T) {
	link := fatLink(9000, 0)
	link.Queue = 8 << 20
	s := newFatStream(1, link)
	s.run(t, 3000*ms)
	before := s.stats()
	got := s.run(t, 500*ms)
	st := s.stats()
	t.Logf("goodput %.3f, %+v", got, st)
	if got < 0.8 || st.Resent-before.Resent > (st.Sent-before.Sent)/100 {
		t.Errorf("goodput is %.2f of the link with %d of %d segments resent", got, st.Resent-before.Resent,
			st.Sent-before.Sent)
	}
}

// TestShortPathKeepsItsWindow: on a short path, peers with 20-bit credits have no more segments in flight than
// others, however long the path's queue may become.
func TestShortPathKeepsItsWindow(t *testing.T) {
	most := 0
	for _, rate := range []float64{1e9, 40e9} {
		s := newFatStream(1, Link{Rate: rate, Size: 1500, Delay: 25 * us})
		for range 50 {
			s.run(t, ms)
			most = max(most, s.stats().Cwnd)
		}
	}
	if most > reliable.DefaultWindow {
		t.Errorf("a window of %d on a path of 50 µs", most)
	}
}
