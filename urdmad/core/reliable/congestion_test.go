package reliable

import "testing"

// TestIsolatedLossInSmallWindow: rare isolated losses are no congestion, for a small window either, however long they
// continue.
func TestIsolatedLossInSmallWindow(t *testing.T) {
	for _, window := range []int{4, 8, 12, 15} {
		var g congestion
		g.init(&Config{Window: 1024, InitialCwnd: window})
		g.thresh = window
		for round := range 20000 {
			g.sample(Millisecond, Millisecond)
			g.acked(window)
			if round%100 == 0 {
				g.countLost()
			}
			g.endRound(Millisecond) // not full: it does not grow
			if g.window < window {
				t.Fatalf("window of %d is %d after %d rounds", window, g.window, round)
			}
		}
	}
}
