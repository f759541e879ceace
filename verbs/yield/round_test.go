package yield

import "testing"

// ends counts the rounds that end with so many polls of queues in turn.
func ends(r *Round, queues, looks int) (n int) {
	for i := range looks {
		if r.Ends(uint32(i % queues)) {
			n++
		}
	}
	return n
}

// TestRound: a round ends when all queues were polled, one or many; if the first one is no longer polled, the
// round still ends.
func TestRound(t *testing.T) {
	for _, queues := range []int{1, 2, 17, 1000} {
		var r Round
		if got := ends(&r, queues, queues); got != 0 {
			t.Errorf("%d queues: %d ends within the first round", queues, got)
		}
		if got := ends(&r, queues, 10*queues); got != 10 {
			t.Errorf("%d queues: %d ends of 10 rounds", queues, got)
		}
		r.Found()
		if got := ends(&r, queues, queues); got != 0 {
			t.Errorf("%d queues: %d ends within the round after a find", queues, got)
		}
	}
	var r Round
	r.Ends(7)
	if got := ends(&r, 1, mostQueues+10); got != 1+10 {
		t.Errorf("%d ends after the first queue was left, expected 11", got)
	}
}
