package reliable_test

import (
	"testing"

	"urdma/urdmad/core/reliable"
	"urdma/wire"
)

const ms = reliable.Millisecond

// sender is a Conn that has measured a round trip of 100 µs, with methods for the tests of recovery.
type sender struct {
	*reliable.Conn
	t   *testing.T
	now reliable.Time
}

func newSender(t *testing.T, cfg reliable.Config) *sender {
	t.Helper()
	cfg.LocalISN, cfg.PeerISN = 1000, 5000
	if cfg.Window == 0 {
		cfg.Window = 64
	}
	cfg.RecvWindow, cfg.PeerWindow, cfg.InitialCwnd = cfg.Window, cfg.Window, cfg.Window
	s := &sender{Conn: new(reliable.Conn), t: t}
	s.Init(cfg)
	s.send(1)
	s.now += 100 * us
	s.ack(s.Next(), 64)
	return s
}

func (s *sender) check() {
	s.t.Helper()
	if err := s.Check(); err != nil {
		s.t.Fatal(err)
	}
}

// send sends n segments and returns the PSN of the first.
func (s *sender) send(n int) wire.PSN {
	first := s.Next()
	for range n {
		s.Send(s.now, 100, 0)
	}
	return first
}

// ack acknowledges, with runs given as pairs of first and end.
func (s *sender) ack(ack wire.PSN, credits uint32, pairs ...wire.PSN) {
	s.t.Helper()
	var runs []wire.SackRun
	for i := 0; i < len(pairs); i += 2 {
		runs = append(runs, wire.SackRun{First: pairs[i], End: pairs[i+1]})
	}
	if err := s.OnSack(s.now, ack, credits, runs); err != nil {
		s.t.Fatal(err)
	}
	s.check()
}

// resend returns the segments that must be resent now.
func (s *sender) resend() (psns []wire.PSN) {
	for psn, _, ok := s.Retransmit(s.now); ok; psn, _, ok = s.Retransmit(s.now) {
		psns = append(psns, psn)
	}
	s.check()
	return psns
}

// timeOut lets timers run until one more timeout has fired, dropping probes.
func (s *sender) timeOut() {
	s.t.Helper()
	for before := s.Stats().Timeouts; s.Stats().Timeouts == before; {
		s.now = s.Deadline()
		if err := s.Tick(s.now); err != nil {
			s.t.Fatal(err)
		}
		if s.Stats().Timeouts == before {
			s.resend()
		}
	}
}

func (s *sender) wantResent(want ...wire.PSN) {
	s.t.Helper()
	got := s.resend()
	if len(got) != len(want) {
		s.t.Fatalf("resent %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			s.t.Fatalf("resent %v, want %v", got, want)
		}
	}
}

// TestNoSampleBehindRetransmission: segments acknowledged together with a resent head may have arrived long
// before, so they give no round-trip sample.
func TestNoSampleBehindRetransmission(t *testing.T) {
	s := newSender(t, reliable.Config{})
	srtt := s.Stats().SRTT
	s.send(3)
	s.timeOut()
	s.resend()
	s.now += 100 * us
	s.ack(s.Next(), 64)
	if got := s.Stats().SRTT; got != srtt {
		t.Errorf("the smoothed round trip went from %d to %d", srtt, got)
	}
}

// TestReorderingIsLearned: segments that count as lost and arrive before they are resent raise the threshold.
func TestReorderingIsLearned(t *testing.T) {
	s := newSender(t, reliable.Config{})
	first := s.send(8)
	s.now += 100 * us
	s.ack(first, 64, first+1, first+6) // overtaken by five
	s.ack(first+6, 64)                 // it arrives now
	s.wantResent()
	s.ack(first+8, 64)
	first = s.send(8)
	s.now += 100 * us
	s.ack(first, 64, first+1, first+6)
	s.wantResent()
	s.ack(first, 64, first+1, first+8)
	s.wantResent(first)
}

// TestUndoneTimeout: the answer to the resent head marks the rest as lost; the arrival of another segment's original
// shows that they are not.
func TestUndoneTimeout(t *testing.T) {
	s := newSender(t, reliable.Config{})
	cwnd := s.Stats().Cwnd
	first := s.send(12)
	s.timeOut()
	s.wantResent(first)
	s.now += 200 * us
	s.ack(first+1, 64)
	if st := s.Stats(); st.Lost < 8 || st.Cwnd > 8 {
		t.Fatalf("after the answer to the head: %+v", st)
	}
	s.ack(first+2, 64)
	// The last one was resent as a probe, and stays marked.
	if st := s.Stats(); st.Undone != 1 || st.Lost != 1 || st.Cwnd != cwnd {
		t.Fatalf("after the next original: %+v", st)
	}
	s.ack(first+4, 64)
	s.wantResent(first + 11)
}

// TestLostWindow: if only the head arrives, the rest is resent in slow start.
func TestLostWindow(t *testing.T) {
	s := newSender(t, reliable.Config{})
	first := s.send(40)
	s.timeOut()
	s.wantResent(first)
	s.now += 100 * us
	s.ack(first+1, 64)
	most := 8
	for done := 1; done < 40; most *= 2 {
		n := len(s.resend())
		if n == 0 || n > most {
			t.Fatalf("%d segments resent in one round trip, after %d", n, done)
		}
		done += n
		s.now += 100 * us
		s.ack(first.Add(uint32(done)), 64)
	}
	if st := s.Stats(); st.Resent > 41+1 || st.Undone > 0 || st.Outstanding > 0 {
		t.Errorf("in the end %+v", st)
	}
}

// TestRetransmissionHasItsTime: a retransmission overtaken by others doesn't count as lost before its own answer
// could arrive.
func TestRetransmissionHasItsTime(t *testing.T) {
	s := newSender(t, reliable.Config{})
	first := s.send(12)
	s.now += 100 * us
	s.ack(first, 64, first+5, first+12)
	s.wantResent(first, first+1, first+2, first+3, first+4)
	s.now += 80 * us // a little early, but not so early that it must be the original
	s.ack(first, 64, first+4, first+12)
	s.wantResent()
	s.now += 30 * us
	if err := s.Tick(s.now); err != nil {
		t.Fatal(err)
	}
	s.wantResent(first, first+1)
}

// TestCreditsBoundRetransmission: only the head may exceed the peer's credits.
func TestCreditsBoundRetransmission(t *testing.T) {
	s := newSender(t, reliable.Config{})
	first := s.send(12)
	s.now += 100 * us
	s.ack(first, 2, first+8, first+12)
	s.wantResent(first, first+1)
	s.now += 100 * us
	s.ack(first+2, 0, first+8, first+12)
	s.wantResent(first + 2) // the head
	s.now += 100 * us
	s.ack(first+3, 64, first+8, first+12)
	s.wantResent(first+3, first+4, first+5, first+6, first+7)
}

func TestTailProbeWithinCredits(t *testing.T) {
	s := newSender(t, reliable.Config{})
	first := s.send(4)
	s.ack(first, 2) // the peer has taken credits back
	s.now = s.Deadline()
	if err := s.Tick(s.now); err != nil {
		t.Fatal(err)
	}
	s.wantResent(first)
}

// TestTailProbeAnsweredEarly: only the segment of a tail loss probe is acknowledged, sooner than the path seemed to
// allow. The segments before it are lost.
func TestTailProbeAnsweredEarly(t *testing.T) {
	s := newSender(t, reliable.Config{})
	first := s.send(8)
	s.now += 100 * us
	s.ack(first.Add(4), 64)
	s.now = s.Deadline()
	if err := s.Tick(s.now); err != nil {
		t.Fatal(err)
	}
	s.wantResent(first.Add(7))
	s.now += 20 * us
	s.ack(first.Add(4), 64, first.Add(7), first.Add(8))
	s.wantResent(first.Add(4), first.Add(5), first.Add(6))
}

// TestTimeoutAnsweredEarly: only the segment that a timeout resent is acknowledged, sooner than the path seemed to
// allow. Had its original arrived, so had those behind it.
func TestTimeoutAnsweredEarly(t *testing.T) {
	s := newSender(t, reliable.Config{})
	first := s.send(4)
	s.timeOut()
	s.wantResent(first)
	s.now += 20 * us
	s.ack(first.Add(1), 64)
	s.wantResent(first.Add(1), first.Add(2), first.Add(3))
}

// TestTimeoutAnsweredEarlyBesideNewer: segments sent after a timeout say nothing about the original of the segment that
// it resent.
func TestTimeoutAnsweredEarlyBesideNewer(t *testing.T) {
	s := newSender(t, reliable.Config{})
	first := s.send(1)
	s.timeOut()
	s.wantResent(first)
	s.send(1)
	s.now += 20 * us
	s.ack(first.Add(1), 64)
	if st := s.Stats(); st.Undone != 1 || st.Cwnd != 64 {
		t.Errorf("the timeout counts as a loss: %+v", st)
	}
}

// TestResendingRestartsTimeout: the head's time-out counts from its last transmission.
func TestResendingRestartsTimeout(t *testing.T) {
	s := newSender(t, reliable.Config{})
	first := s.send(6)
	s.timeOut()
	s.now += 3 * ms // the engine's queue was full
	s.wantResent(first)
	resent, rto := s.now, s.Stats().RTO
	s.timeOut()
	if s.now < resent+rto || s.now > resent+rto+rto/4 {
		t.Errorf("timeout %d µs after the head was resent, want %d and up to a quarter more", (s.now-resent)/us, rto/us)
	}
}

// TestPeerReneges: if a peer reported the head as received but never acknowledges it, the head is resent after the
// time-out.
func TestPeerReneges(t *testing.T) {
	s := newSender(t, reliable.Config{})
	first := s.send(2)
	s.now += 100 * us
	s.ack(first-1, 0, first, first+2)
	if st := s.Stats(); st.InFlight != 0 || st.Outstanding != 2 {
		t.Fatalf("after the report: %+v", st)
	}
	s.timeOut()
	if got := s.resend(); len(got) == 0 || got[0] != first {
		t.Fatalf("resent %v, want %d first", got, first)
	}
}

// TestHeldOff: a peer that keeps its window closed but answers is not dead.
func TestHeldOff(t *testing.T) {
	s := newSender(t, reliable.Config{})
	first := s.send(3)
	for end := s.now + 20*reliable.Second; s.now < end; {
		s.now = max(s.now, s.Deadline())
		if err := s.Tick(s.now); err != nil {
			t.Fatalf("after %d ms: %v", s.now/ms, err)
		}
		s.resend()
		s.now += 100 * us
		s.ack(first, 0) // it has no room for it
	}
	s.ack(first+3, 3)
	if n := s.CanSend(s.now); n != 3 {
		t.Errorf("CanSend is %d, want 3", n)
	}
}

// TestProbingStops: there is no probe once the window is open, and the first probe is sent no sooner than a time-out
// after there was nothing else to send.
func TestProbingStops(t *testing.T) {
	s := newSender(t, reliable.Config{})
	first := s.send(1)
	s.ack(first, 1)
	if s.CanSend(s.now) != 0 {
		t.Fatal("credits do not bound")
	}
	s.now += 50 * ms
	s.ack(first+1, 0)
	if d := s.Deadline() - s.now; d < s.Stats().RTO || d > 500*ms {
		t.Fatalf("probe in %d µs", d/us)
	}
	s.now = s.Deadline()
	if !s.ProbeDue(s.now) || s.ProbeDue(s.now) {
		t.Fatal("want one probe")
	}
	s.ack(first+1, 4)
	if d := s.Deadline(); d != reliable.Never || s.ProbeDue(s.now+reliable.Second) {
		t.Errorf("still probing an open window: deadline %d", d)
	}
}

// TestLongerPath: a longer round trip of a new route is accepted after some seconds.
func TestLongerPath(t *testing.T) {
	s := newSender(t, reliable.Config{})
	if got := s.Stats().MinRTT; got != 100*us {
		t.Fatalf("least round trip is %d", got)
	}
	for n := range 100 {
		s.send(1)
		s.now += 300 * us
		s.ack(s.Next(), 64)
		s.now += 50 * ms
		if got := s.Stats().MinRTT; n < 60 && got != 100*us {
			t.Fatalf("least round trip is %d µs after %d ms", got/us, s.now/ms)
		}
	}
	if got := s.Stats().MinRTT; got != 300*us {
		t.Errorf("least round trip is still %d µs", got/us)
	}
}

// TestHeardPeerLives: a peer that is heard but acknowledges nothing is given up after four times the death
// timeout; one that becomes silent, after one death timeout.
func TestHeardPeerLives(t *testing.T) {
	const death = reliable.DefaultDeathTimeout
	for _, c := range []struct{ heardFor, diesAt reliable.Time }{{0, death}, {death - 1*ms, 2*death - 1*ms},
		{10 * death, 4 * death}} {
		s := newSender(t, reliable.Config{})
		s.send(3)
		began, dead := s.now, error(nil)
		for hears := began + ms; dead == nil; {
			s.now = s.Deadline()
			if hears <= s.now && hears <= began+c.heardFor {
				s.now = hears
				hears += 2 * ms
				s.ack(s.Acked(), 64)
			}
			dead = s.Tick(s.now)
			s.resend()
		}
		if took := s.now - began; took < c.diesAt-2*ms || took > c.diesAt+2*ms {
			t.Errorf("heard for %d ms: died after %d ms, want %d", c.heardFor/ms, took/ms, c.diesAt/ms)
		}
	}
}

// TestTimeoutsSpread: connections that lost everything at the same time don't try again at the same times.
func TestTimeoutsSpread(t *testing.T) {
	var at [2]reliable.Time
	for i := range at {
		s := newSender(t, reliable.Config{})
		s.send(1 + i)
		for range 4 {
			s.timeOut()
			s.resend()
		}
		at[i] = s.now
	}
	if d := at[1] - at[0]; d > -100*us && d < 100*us {
		t.Errorf("the fourth timeouts are at %d and %d", at[0], at[1])
	}
}
