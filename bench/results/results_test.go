package results

import (
	"testing"
)

func figure(id string, values ...float64) *Figure {
	f := &Figure{ID: id, Better: Higher}
	for i, v := range values {
		if v != 0 { // 0: no value in that round
			f.Values = append(f.Values, Value{Round: i, Value: v})
		}
	}
	return f
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want Spread
	}{
		{nil, Spread{}},
		{[]float64{3}, Spread{3, 3, 3, 1}},
		{[]float64{9, 1, 5}, Spread{1, 5, 9, 3}},
		{[]float64{4, 2, 8, 6}, Spread{2, 5, 8, 4}},
	} {
		if got := SpreadOf(c.in); got != c.want {
			t.Errorf("SpreadOf(%v) = %+v, want %+v", c.in, got, c.want)
		}
	}
}

// A ratio compares figures of the same round. A round that is slow for both, or that lacks one of them, changes
// nothing.
func TestJudgePairsRounds(t *testing.T) {
	r := &Run{Figures: []*Figure{figure("ours", 40, 4, 44), figure("peer", 10, 1, 0, 7)}}
	s, v := r.Judge(Target{Ours: "ours", Peer: "peer", Least: 4})
	if want := (Spread{4, 4, 4, 2}); s != want || v != Met {
		t.Errorf("got %+v %q, want %+v %q", s, v, want, Met)
	}
}

func TestVerdicts(t *testing.T) {
	r := &Run{Figures: []*Figure{figure("x", 1, 2, 3, 4, 5), figure("once", 7)}}
	for _, c := range []struct {
		t    Target
		want Verdict
	}{
		{Target{Ours: "x", Least: 1}, Met},
		{Target{Ours: "x", Least: 6}, Missed},
		{Target{Ours: "x", Least: 3}, MostlyMet},
		{Target{Ours: "x", Least: 3.5}, MostlyMiss},
		{Target{Ours: "x", Most: 5}, Met},
		{Target{Ours: "x", Most: 0.5}, Missed},
		{Target{Ours: "x", Most: 3}, MostlyMet},
		{Target{Ours: "x", Least: 1, Most: 2}, MostlyMiss},
		{Target{Ours: "x", Least: 0.2, Steady: true}, Met},
		{Target{Ours: "x", Least: 0.3, Steady: true}, Missed},
		{Target{Ours: "once", Least: 0.3, Steady: true}, Unmeasured},
		{Target{Ours: "y", Most: 2}, Unmeasured},
		{Target{Ours: "x", Peer: "y", Most: 2}, Unmeasured},
	} {
		if _, got := r.Judge(c.t); got != c.want {
			t.Errorf("%+v: %q, want %q", c.t, got, c.want)
		}
	}
}

func TestBound(t *testing.T) {
	for want, target := range map[string]Target{
		"≥ 5000": {Least: 5000}, "≤ 0.667": {Most: 2. / 3}, "1 to 2": {Least: 1, Most: 2},
	} {
		if got := target.Bound(); got != want {
			t.Errorf("%+v: %q, want %q", target, got, want)
		}
	}
}
