package pingpong

import (
	"testing"

	"urdma/urdmad/core/clock"
)

// TestDetector: waiting begins with the fourth quick answer in a row, and ends with the second unanswered wait in a
// row.
func TestDetector(t *testing.T) {
	d := Detector{Delay: 100}
	now := clock.Time(1000)
	exchange := func(took clock.Time, want bool) {
		t.Helper()
		d.Asked(now)
		if begins := d.Answered(now + took); begins != want {
			t.Errorf("an answer after %d: waiting begins: %v", took, begins)
		}
		now += 1000
	}
	for _, took := range []clock.Time{100, 100, 100, 101, 50, 50, 50} {
		exchange(took, false)
	}
	if d.Answered(now) {
		t.Error("an answer to nothing counts")
	}
	exchange(0, true)
	exchange(101, false)
	d.Needless()
	d.Useful()
	d.Needless()
	if !d.On() {
		t.Error("waiting has ended after one needless wait in a row")
	}
	d.Needless()
	if d.On() {
		t.Error("waiting has not ended after two needless waits in a row")
	}
	for range 3 {
		exchange(0, false)
	}
	exchange(0, true)
	d = Detector{Delay: 100}
	for range 3 {
		exchange(0, false)
	}
	d.Asked(now)
	d.Asked(now + 101) // the first was not answered
	if d.Answered(now + 110) {
		t.Error("a message without an answer does not count")
	}
}
