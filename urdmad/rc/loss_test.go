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
