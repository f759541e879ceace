package reliabletest

import (
	"math/rand/v2"
	"testing"

	"urdma/urdmad/core/reliable"
)

const (
	us = reliable.Microsecond
	ms = reliable.Millisecond
)

// stream is one peer that sends to the other as fast as possible.
type stream struct {
	*World
	rate float64
	size int
}

// newStream connects two peers with default windows over equal links; the program posts without end, as in a
// bandwidth test.
func newStream(seed uint64, link Link) *stream {
	return newStreamOf(seed, link, reliable.Config{Window: 1024, RecvWindow: 1024, PeerWindow: 1024})
}

// newBatchStream is newStream for ports on which packets leave in batches.
func newBatchStream(seed uint64, link Link) *stream {
	return newStreamOf(seed, link, reliable.Config{Window: 1024, RecvWindow: 1024, PeerWindow: 1024, Batches: true})
}

func newStreamOf(seed uint64, link Link, cfg reliable.Config) *stream {
	return newStreamBetween(seed, link, cfg, cfg)
}

func newStreamBetween(seed uint64, link Link, one, other reliable.Config) *stream {
	a, b := NewPeer("a", one, 1, 2), NewPeer("b", other, 2, 1)
	there, back := link, link
	back.Faults = Faults{Loss: link.Loss} // acknowledgements are lost, too
	w := NewWorld(rand.New(rand.NewPCG(seed, 1)), a, b, &there, &back)
	w.TurnAfter = us
	a.Queued = 1 << 40
	w.Wake(0, 0)
	w.Wake(1, 0)
	return &stream{World: w, rate: link.Rate, size: link.Size}
}

// run lets d pass and returns the goodput in that time as a fraction of the rate.
func (s *stream) run(t *testing.T, d reliable.Time) float64 {
	t.Helper()
	end, before := s.Now+d, s.Peers[1].Delivered
	stop := false
	s.At(end, func() { stop = true })
	if err := s.Run(reliable.Never, func() bool { return stop }); err != nil {
		t.Fatal(err)
	}
	bits := float64(s.Peers[1].Delivered-before) * float64(s.size) * 8
	return bits / s.rate / (float64(d) / 1e9)
}

func (s *stream) stats() reliable.Stats { return s.Peers[0].Conn.Stats() }

func TestGoodput(t *testing.T) {
	tests := []struct {
		name  string
		link  Link
		least float64 // goodput
		most  float64 // of the sent segments
	}{
		{"50 Gb/s, 50 µs there and back", Link{Rate: 50e9, Delay: 25 * us}, 0.95, 0.001},
		{"50 Gb/s, 100 µs there and back", Link{Rate: 50e9, Delay: 50 * us}, 0.95, 0.001},
		{"40 Gb/s, 1 % loss", Link{Rate: 40e9, Delay: 25 * us, Faults: Faults{Loss: 0.01}}, 0.85, 0.015},
		{"40 Gb/s, 1 % loss, longer", Link{Rate: 40e9, Delay: 50 * us, Faults: Faults{Loss: 0.01}}, 0.70, 0.015},
		{"40 Gb/s, 0.1 % loss", Link{Rate: 40e9, Delay: 50 * us, Faults: Faults{Loss: 0.001}}, 0.90, 0.002},
		{"10 Gb/s, 1 % loss", Link{Rate: 10e9, Delay: 25 * us, Faults: Faults{Loss: 0.01}}, 0.70, 0.015},
		{"10 Gb/s, 5 % loss", Link{Rate: 10e9, Delay: 25 * us, Faults: Faults{Loss: 0.05}}, 0.70, 0.07},
		{"10 Gb/s, 5 % loss, longer", Link{Rate: 10e9, Delay: 100 * us, Faults: Faults{Loss: 0.05}}, 0.70, 0.07},
		{"1 Gb/s, 5 % loss", Link{Rate: 1e9, Delay: 500 * us, Faults: Faults{Loss: 0.05}}, 0.70, 0.07},
		{"10 Gb/s, short queue", Link{Rate: 10e9, Delay: 25 * us, Queue: 100_000}, 0.90, 0.02},
		{"10 Gb/s, very short queue", Link{Rate: 10e9, Delay: 25 * us, Queue: 40_000}, 0.85, 0.07},
		{"10 Gb/s, reordering", Link{Rate: 10e9, Delay: 25 * us, Faults: Faults{Reorder: 0.05, ReorderBy: 30 * us}}, 0.85,
			0.01},
		{"1 Gb/s, 10 ms", Link{Rate: 1e9, Delay: 5 * ms, Queue: 1 << 20}, 0.80, 0.001},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.link.Size = 1500
			s := newStream(1, tt.link)
			s.run(t, max(5*ms, 100*tt.link.Delay)) // slow start
			before := s.stats()
			got := s.run(t, max(20*ms, 40*tt.link.Delay))
			sent, resent := s.stats().Sent-before.Sent, s.stats().Resent-before.Resent
			t.Logf("goodput %.1f %% of the link, %+v", 100*got, s.stats())
			if got < tt.least {
				t.Errorf("goodput is %.1f %% of the link, want %.1f %%", 100*got, 100*tt.least)
			}
			if float64(resent) > tt.most*float64(sent) {
				t.Errorf("%d of %d segments resent, want %.1f %% at most", resent, sent, 100*tt.most)
			}
		})
	}
}

// TestLongPath checks that a path with room for far more than the window is used as far as the window allows, with
// isolated losses as well, and that losses are repaired without a time-out's pause.
func TestLongPath(t *testing.T) {
	const delay, window = 25 * ms, 1024
	for _, loss := range []float64{0, 0.0005} {
		link := Link{Rate: 10e9, Size: 1500, Delay: delay, Faults: Faults{Loss: loss}}
		s := newStream(1, link)
		s.run(t, 20*2*delay) // slow start; its first time-outs are unavoidable
		before := s.stats().Timeouts
		got := s.run(t, 20*2*delay) * link.Rate / 8 / float64(link.Size) * float64(2*delay) / 1e9
		t.Logf("loss %g: %.0f segments a round trip, %+v", loss, got, s.stats())
		least := 0.97 * window
		if loss > 0 {
			least = 0.4 * window // a lost segment blocks the window for a round trip
		}
		if st := s.stats(); got < least || st.Timeouts > before {
			t.Errorf("loss %g: %.0f segments a round trip, want %.0f and no timeout: %+v", loss, got, least, st)
		}
	}
}

// TestStandingQueue checks that delay, not loss, ends growth: a queue that could hold far more holds about the
// target, or the rest that the window's minimum leaves in it.
func TestStandingQueue(t *testing.T) {
	for _, gbps := range []float64{40, 10} {
		s := newStream(1, Link{Rate: gbps * 1e9, Size: 1500, Delay: 25 * us})
		s.run(t, 50*ms)
		before := s.stats()
		goodput := s.run(t, 20*ms)
		st := s.stats()
		const floor = 1024 / 4
		if queue := st.SRTT - st.MinRTT; queue > 2*reliable.MinTargetDelay && st.Cwnd > floor+8 {
			t.Errorf("the queue stands at %d µs, want about %d: %+v", queue/us, reliable.MinTargetDelay/us, st)
		}
		if st.Resent > before.Resent || goodput < 0.95 {
			t.Errorf("goodput %.2f with %d resent, want a full link and none", goodput, st.Resent)
		}
	}
}

// TestSharedCore runs the receiver only from time to time, because another program uses its core in between. For the
// sender that looks like a queue from the first round trip on. The window's minimum must be in flight all the same.
func TestSharedCore(t *testing.T) {
	for _, away := range []reliable.Time{50 * us, 100 * us, 200 * us} {
		s := newStream(1, Link{Rate: 40e9, Size: 1500, Delay: 5 * us})
		s.Peers[0].Queued = 8 // a first message shows the path's own round trip
		s.run(t, 1*ms)
		var pause func()
		pause = func() {
			s.Pause(1, away)
			s.At(s.Now+away+away/8, pause)
		}
		s.At(s.Now, pause)
		s.Peers[0].Queued = 1 << 40
		s.Wake(0, s.Now)
		s.run(t, 20*ms)
		got := s.run(t, 20*ms)
		st := s.stats()
		t.Logf("away for %d µs: goodput %.2f, %+v", away/us, got, st)
		const floor = 1024 / 4
		if st.Cwnd < floor {
			t.Errorf("away for %d µs at a time: %d segments in flight, want %d at least", away/us, st.Cwnd, floor)
		}
	}
}

// TestAckRate checks that a one-way stream is not acknowledged too often, though the peer takes a turn after every
// few segments.
func TestAckRate(t *testing.T) {
	s := newStream(1, Link{Rate: 50e9, Size: 1500, Delay: 25 * us})
	s.run(t, 20*ms)
	sent, acks := s.Links[0].Packets, s.Links[1].Packets
	if acks*12 > sent {
		t.Errorf("%d acknowledgements for %d segments", acks, sent)
	}
}

// TestSparseAcks: if packets leave in batches, a stream has one acknowledgement for 64 segments or more and is as
// fast as otherwise. At its end, and for a single message, nothing waits for the acknowledgement.
func TestSparseAcks(t *testing.T) {
	link := Link{Rate: 50e9, Size: 1500, Delay: 25 * us}
	s := newBatchStream(1, link)
	s.run(t, 20*ms)
	sent, acks := s.Links[0].Packets, s.Links[1].Packets
	goodput := s.run(t, 20*ms)
	sent, acks = s.Links[0].Packets-sent, s.Links[1].Packets-acks
	t.Logf("%d acknowledgements for %d segments, goodput %.3f", acks, sent, goodput)
	if acks*64 > sent || goodput < 0.95 {
		t.Errorf("%d acknowledgements for %d segments, goodput %.3f", acks, sent, goodput)
	}
	for _, segments := range []int{1, 15, 16, 47, 64, 300} {
		s := newBatchStream(1, link)
		s.Peers[0].Queued = segments
		for range 3 {
			began := s.Now
			if err := s.Run(reliable.Never, func() bool {
				return s.Peers[0].Conn.Acked() == s.Peers[0].Conn.Next() &&
					s.Peers[0].Queued == 0
			}); err != nil {
				t.Fatal(err)
			}
			// The round trip, and the link's time for the segments; the congestion window of 64 may need
			// more round trips.
			trips := reliable.Time(1 + segments/64)
			if took := s.Now - began; took > trips*(2*link.Delay+10*us)+reliable.Time(segments)*240 {
				t.Errorf("%d segments took %d µs to be acknowledged", segments, took/us)
			}
			s.Peers[0].Queued = segments
			s.Wake(0, s.Now)
		}
	}
}

// TestPauses suspends one end for 4 ms again and again, as a busy machine with few cores does. That costs the time of
// the pauses and one or two probes each, without a storm of packets or a collapse.
func TestPauses(t *testing.T) {
	for i, who := range []string{"sender", "receiver"} {
		t.Run(who, func(t *testing.T) {
			s := newStream(1, Link{Rate: 40e9, Size: 1500, Delay: 10 * us})
			s.run(t, 5*ms)
			const pauses = 10
			for n := range reliable.Time(pauses) {
				s.At(s.Now+n*10*ms+1, func() { s.Pause(i, 4*ms) })
			}
			before := s.stats()
			got := s.run(t, pauses*10*ms)
			st := s.stats()
			t.Logf("goodput %.1f %%, %+v", 100*got, st)
			if resent := st.Resent - before.Resent; resent > 3*pauses {
				t.Errorf("%d segments resent in %d pauses", resent, pauses)
			}
			if got < 0.55 {
				t.Errorf("goodput %.1f %% while awake 60 %% of the time", 100*got)
			}
			if st.Cwnd < 256 {
				t.Errorf("the congestion window fell to %d", st.Cwnd)
			}
		})
	}
}

// TestLongPauses: pauses are longer than the time-out, which fires and is undone.
func TestLongPauses(t *testing.T) {
	s := newStream(1, Link{Rate: 40e9, Size: 1500, Delay: 10 * us})
	s.run(t, 5*ms)
	for n := range reliable.Time(5) {
		s.At(s.Now+n*60*ms+1, func() { s.Pause(1, 30*ms) })
	}
	s.run(t, 300*ms)
	st := s.stats()
	t.Logf("%+v", st)
	if st.Timeouts == 0 || st.Undone == 0 {
		t.Errorf("%d timeouts, %d undone: want some of each", st.Timeouts, st.Undone)
	}
	if st.Resent > 100 {
		t.Errorf("%d segments resent in 5 pauses", st.Resent)
	}
	if got := s.run(t, 10*ms); got < 0.9 {
		t.Errorf("goodput is %.1f %% after the pauses", 100*got)
	}
}

// TestOutage loses whole windows: the window collapses, few packets are sent during the outage, and the rate recovers
// soon after it.
func TestOutage(t *testing.T) {
	s := newStream(1, Link{Rate: 10e9, Size: 1500, Delay: 25 * us, Queue: 1 << 20})
	s.run(t, 20*ms)
	s.Links[0].Loss = 1
	before := s.stats()
	s.run(t, 100*ms)
	st := s.stats()
	if sent := st.Sent + st.Resent - before.Sent - before.Resent; sent > 1024+20 {
		t.Errorf("%d packets sent into the outage", sent)
	}
	if st.Cwnd > 8 {
		t.Errorf("the congestion window is %d in the outage", st.Cwnd)
	}
	s.Links[0].Loss = 0
	s.run(t, 160*ms) // the backed-off time-out may take as long again
	if got := s.run(t, 10*ms); got < 0.9 {
		t.Errorf("goodput is %.1f %% after the outage: %+v", 100*got, s.stats())
	}
}

// TestShortOutage: an outage loses most of a round, but the path had no queue and holds as much as before.
func TestShortOutage(t *testing.T) {
	const trip = 500 * us
	for _, lasts := range []reliable.Time{trip * 6 / 10, trip * 9 / 10} {
		s := newStream(1, Link{Rate: 10e9, Size: 1500, Delay: trip / 2})
		s.run(t, 20*ms)
		s.Links[0].Loss = 1
		s.At(s.Now+lasts, func() { s.Links[0].Loss = 0 })
		got := s.run(t, 40*trip)
		t.Logf("%d µs: goodput %.2f in 40 round trips, %+v", lasts/us, got, s.stats())
		if got < 0.93 {
			t.Errorf("goodput is %.2f of the link in the 40 round trips after an outage of %d µs", got, lasts/us)
		}
	}
}

// TestWindowLost: a long path loses a whole window. It is resent in tens of round trips.
func TestWindowLost(t *testing.T) {
	const trip = 10 * ms
	s := newStream(1, Link{Rate: 10e9, Size: 1500, Delay: trip / 2})
	s.run(t, 20*trip)
	before := s.stats()
	s.Links[0].Loss = 1
	s.At(s.Now+trip, func() { s.Links[0].Loss = 0 })
	s.run(t, 80*trip)
	st := s.stats()
	t.Logf("%+v", st)
	if st.Timeouts == before.Timeouts || st.Sent-before.Sent < 4096 || st.Cwnd < 64 {
		t.Errorf("%d segments sent in 80 round trips, and the window is %d: %+v", st.Sent-before.Sent, st.Cwnd, st)
	}
}

// TestTwoStreams: two streams share a link; neither starves.
func TestTwoStreams(t *testing.T) {
	link := Link{Rate: 10e9, Size: 1500, Delay: 25 * us, Queue: 1 << 20}
	all := sharing(2, link)
	together(t, all, 100*ms)
	one, two := all[0], all[1]
	var share [2]uint64
	share[0], share[1] = one.Peers[1].Delivered, two.Peers[1].Delivered
	t.Logf("segments %v, windows %d and %d", share, one.stats().Cwnd, two.stats().Cwnd)
	if min(share[0], share[1])*4 < max(share[0], share[1]) {
		t.Errorf("shares are %v", share)
	}
	total := float64(share[0]+share[1]) * 1500 * 8 / 10e9 / 0.1
	if total < 0.9 {
		t.Errorf("together %.1f %% of the link", 100*total)
	}
}
