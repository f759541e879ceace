package reliable

import "testing"

// TestReorderingFollowsTheWindow: the tolerance of reordering is bounded by the number of segments that can
// be outstanding on this path, not on a long path. Otherwise, on a short path no number of later segments
// would show a loss.
func TestReorderingFollowsTheWindow(t *testing.T) {
	var c Conn
	c.Init(Config{Window: MaxWindow, RecvWindow: 1024})
	for i := range Time(20) {
		now := (i + 1) * Millisecond
		psn := c.Send(now, 1, 0)
		if err := c.OnAck(now+20*Microsecond, psn.Add(1), 1024); err != nil {
			t.Fatal(err)
		}
		c.Send(now+50*Microsecond, 1, 0)
		c.tmr.base, c.tmr.tailProbed = now, false
		c.resend(now+60*Microsecond, c.tx.una)
		c.tmr.tailProbed = false
		if err := c.OnAck(now+62*Microsecond, c.Next(), 1024); err != nil { // of the first segment
			t.Fatal(err)
		}
	}
	if c.stats.Needless < 15 {
		t.Fatalf("%+v", c.stats)
	}
	if c.loss.reorder > DefaultWindow/2 {
		t.Errorf("a loss shows after %d later segments, with a window of %d", c.loss.reorder, c.cc.top)
	}
}
