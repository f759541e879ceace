package reliable

import "testing"

// TestReorderingFollowsTheWindow: how far apart segments may arrive is bounded by what
// can be under way, not by what could be on a long path, or else no number of later
// ones shows a loss on a short one.
func TestReorderingFollowsTheWindow(t *testing.T) {
	var c Conn
	c.Init(Config{Window: MaxWideWindow, RecvWindow: 1024, Wide: true})
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
		if err := c.OnAck(now+62*Microsecond, c.Next(), 1024); err != nil { // the first one's
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
