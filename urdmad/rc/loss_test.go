package rc

import (
	"testing"

	"urdma/urdmad/clock"
	"urdma/wire/roce"
)

// TestMissed: what a NAK has sent again was lost, what a time-out has sent again may be late.
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

// TestWaitsWithinTheTries: on a path that loses, packets are sent again at least once in each
// time-out, also where no round trip was measured and earlier ones had long been waited for.
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
