package yield

import (
	"math"
	"testing"
	"time"
)

// TestAlone: the value that urdmad states is used, within limits; if it states none, a default.
func TestAlone(t *testing.T) {
	for _, c := range []struct {
		told Alone
		ns   int64
		wait time.Duration
	}{
		{0, 1000, 200 * time.Microsecond},
		{1000, 1000, 200 * time.Microsecond},
		{7500, 7500, 1500 * time.Microsecond},
		{1<<32 - 1, 30000, 6 * time.Millisecond},
	} {
		if c.told.ns() != c.ns || c.told.Wait() != c.wait {
			t.Errorf("%d: %d ns, wait %v; expected %d, %v", c.told, c.told.ns(), c.told.Wait(), c.ns, c.wait)
		}
	}
}

// TestRest: there is no yield unless urdmad requests it, and none during a rest, which is twice as long as a
// yield in which no other thread ran.
func TestRest(t *testing.T) {
	var y Poll
	if y.Empty(Wish{}) {
		t.Error("yields unasked")
	}
	if wish := (Wish{Every: 3}); y.Empty(wish) {
		t.Error("yields at the second empty poll of three")
	}
	before := Monotonic()
	y.Rest(1 << 31)
	if rest := y.rest.Load(); rest < before+2*aloneMost || rest > Monotonic()+2*aloneMost {
		t.Errorf("at %d a rest until %d, expected %d ns", before, rest, 2*aloneMost)
	}
	y.rest.Store(math.MaxInt64)
	if y.Empty(Wish{Every: 1, Alone: 1 << 31}) {
		t.Error("yields while it rests")
	}
}

// TestBurst: a burst of posts yields once, however long that yield takes.
func TestBurst(t *testing.T) {
	var (
		post Post
		cq   Poll
	)
	cq.Polled()
	before := Monotonic()
	post.After(&cq, &cq, CurrentCore(), 0)
	if ended := post.yielded.Load(); ended < before {
		t.Errorf("the yield after a poll ended at %d, and it began after %d", ended, before)
	}
	const later = math.MaxInt64
	post.yielded.Store(later)
	post.After(&cq, &cq, CurrentCore(), 0)
	if ended := post.yielded.Load(); ended != later {
		t.Errorf("the second post of a burst yielded, until %d", ended)
	}
}
