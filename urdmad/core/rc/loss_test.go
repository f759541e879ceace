package rc

import (
	"testing"

	"urdma/urdmad/core/clock"
	"urdma/wire/roce"
)

// TestMissed: a packet resent because of a NAK was lost; a packet resent because of a time-out may only be
// late.
func TestMissed(t *testing.T) {
	var r Requester
	var stats Stats
	r.Init(Config{PSN: 7, MTU: 1024, Timeout: clock.Second, Retries: NoLimit, RNRRetries: NoLimit}, &stats)
	r.Begin(1, Data, 8*1024)
	now := clock.Time(1)
	all := func(again, missed bool) {
		t.Helper()
		n := 0
		for p, ok := r.Next(now); ok; p, ok = r.Next(now) {
			if p.Again != again || p.Missed != missed {
				t.Errorf("packet %d: again %v, missed %v", p.PSN, p.Again, p.Missed)
			}
			r.Sent(now, &p)
			n++
		}
		if n == 0 {
			t.Error("nothing is sent")
		}
	}
	all(false, false)
	now = r.Deadline()
	r.Tick(now)
	all(true, false)
	r.Acknowledgement(now, 9, roce.NAKSequence)
	all(true, true)
	now = r.Deadline()
	r.Tick(now)
	all(true, false)
}

// TestWaitsWithinTheTries: on a lossy path, packets are sent again at least once in each time-out, even if no round
// trip was measured and earlier waits were long.
func TestWaitsWithinTheTries(t *testing.T) {
	const timeout, retries = 67 * clock.Millisecond, 7
	var r Requester
	var stats Stats
	r.Init(Config{PSN: 1, MTU: 1024, Timeout: timeout, Retries: retries, RNRRetries: NoLimit}, &stats)
	r.Begin(1, Data, 8*1024)
	now := clock.Time(1)
	send := func() (n int) {
		for p, ok := r.Next(now); ok; p, ok = r.Next(now) {
			r.Sent(now, &p)
			n++
		}
		return n
	}
	lose := func(tries int) (sent int) {
		for end := now + clock.Time(tries)*timeout; now < end; now = r.Deadline() {
			if h := r.Tick(now); h.Failure != 0 {
				t.Fatalf("gives up: %v", h.Failure)
			}
			sent += min(send(), 1)
		}
		return sent
	}
	lose(retries)
	r.Acknowledgement(now, 1, roce.ACK)
	if n := lose(retries); n < retries-1 {
		t.Errorf("sent again %d times in %d time-outs", n, retries)
	}
}

// late makes a requester with a full window of packets in flight, whose peer has answered everything before
// them and is silent until a time-out. It returns the number of packets in flight, and the window.
func late(t *testing.T, r *Requester, kind Kind) (now clock.Time, first, sent Sequence, size int) {
	t.Helper()
	var stats Stats
	r.Init(Config{PSN: 1, MTU: 1024, Reads: 16, Timeout: clock.Second, Retries: NoLimit, RNRRetries: NoLimit}, &stats)
	now = 1
	for range 8 { // the window grows
		r.Begin(1, kind, uint32(r.window.size)*1024)
		leave(r, now)
		now += clock.Millisecond
		if kind == Data {
			r.Acknowledgement(now, (r.sent - 1).PSN(), roce.ACK)
		}
		for r.acked < r.sent {
			r.Response(now, r.acked.PSN(), 1024)
		}
	}
	r.Begin(1, kind, uint32(r.window.size)*1024)
	leave(r, now)
	first, sent, size = r.acked, r.sent, r.window.size
	now = r.Deadline()
	r.Tick(now)
	if n := leave(r, now); n != 1 || stats.Timeouts != 1 {
		t.Fatalf("%d requests leave after %d time-outs", n, stats.Timeouts)
	}
	return now, first, sent, size
}

// leave sends all packets that may be sent.
func leave(r *Requester, now clock.Time) (n int) {
	for p, ok := r.Next(now); ok; p, ok = r.Next(now) {
		r.Sent(now, &p)
		n++
	}
	return n
}

// TestLatePeer: after a time-out, one request asks the peer what it has received. If everything had arrived
// and only the answer was late, nothing else is resent, and the window does not change.
func TestLatePeer(t *testing.T) {
	var r Requester
	now, _, sent, size := late(t, &r, Data)
	r.Acknowledgement(now+1, (sent - 1).PSN(), roce.ACK)
	if r.window.size < size || r.Waiting() || !r.Idle() {
		t.Errorf("window %d, was %d; %d of %d to be sent", r.window.size, size, r.next, r.end)
	}
	now, first, sent, size := late(t, &r, Read)
	for s := first; s < sent; s++ {
		r.Response(now+1, s.PSN(), 1024)
	}
	if r.window.size < size || r.Waiting() || !r.Idle() {
		t.Errorf("Read: window %d, was %d; %d of %d to be sent", r.window.size, size, r.next, r.end)
	}
}

// TestLateAnswerToOne: after a time-out with one packet outstanding it is unknown whether the network has dropped it,
// so the window continues to grow as from the start.
func TestLateAnswerToOne(t *testing.T) {
	var r Requester
	var stats Stats
	r.Init(Config{PSN: 1, MTU: 1024, Timeout: clock.Second, Retries: NoLimit, RNRRetries: NoLimit}, &stats)
	size := r.window.size
	r.Begin(1, Data, 64)
	leave(&r, 1)
	now := r.Deadline()
	r.Tick(now)
	leave(&r, now)
	r.Acknowledgement(now+1, 1, roce.ACK)
	if r.window.size != size || r.window.until != 0 {
		t.Errorf("window %+v, was %d", r.window, size)
	}
}

// TestLostAll: if everything was really lost, the answer to the one request causes the rest to be sent again, with
// half the window.
func TestLostAll(t *testing.T) {
	for _, kind := range []Kind{Data, Read} {
		var r Requester
		now, first, sent, size := late(t, &r, kind)
		answered := Sequence(1)
		if kind == Data {
			r.Acknowledgement(now+1, first.PSN(), roce.ACK)
		} else {
			for answered = 0; answered < readPackets; answered++ {
				r.Response(now+1, (first + answered).PSN(), 1024)
			}
		}
		if r.acked != first+answered || r.window.size != size/2 {
			t.Errorf("kind %d: %d answered, window %d, was %d", kind, r.acked-first, r.window.size, size)
		}
		if leave(&r, now+1); r.next < min(sent, r.acked+Sequence(size/2)) {
			t.Errorf("kind %d: %d of %d sent again", kind, r.next-first, sent-first)
		}
	}
}
