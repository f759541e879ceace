package suite

import "testing"

// TestUnixSockets: both measurements give plausible figures.
func TestUnixSockets(t *testing.T) {
	b := &bench{}
	b.Seconds = 0.05
	if v, err := unixStream(64 << 10)(b); err != nil || len(v) != 1 || v[0] <= 0 {
		t.Errorf("stream: %v, %v", v, err)
	}
	if v, err := unixTrip(b); err != nil || len(v) != 2 || v[0] <= 0 || v[1] < v[0] {
		t.Errorf("round trips: %v, %v", v, err)
	}
}
