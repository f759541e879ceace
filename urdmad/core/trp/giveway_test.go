package trp

import (
	"testing"

	"urdma/urdmad/core/clock"
)

// TestLightSenders: each connection gives way to others, not to itself.
func TestLightSenders(t *testing.T) {
	var v lightSenders
	other := func(number uint16, at int64, want bool) {
		t.Helper()
		if got := v.other(number, lightPause*100+lightPause/10*clock.Time(at)); got != want {
			t.Errorf("other than %d at %d: %v", number, at, got)
		}
	}
	note := func(number uint16, at int64) {
		v.note(number, lightPause*100+lightPause/10*clock.Time(at))
	}
	other(1, 0, false)
	note(2, 0)
	note(2, 1)
	other(1, 1, true)
	other(2, 1, false)
	note(1, 2)
	other(1, 2, true)
	other(2, 2, true)
	other(3, 2, true)
	note(1, 8)
	other(1, 12, false) // the other has been silent
	other(2, 12, true)
	other(3, 12, true)
	other(3, 18, false)
}
