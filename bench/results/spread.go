package results

import (
	"fmt"
	"slices"
)

// Spread sums up several measurements of one quantity.
type Spread struct {
	Least, Median, Most float64
	N                   int
}

// SpreadOf sums up values; N is 0 if there are none.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	v := slices.Clone(values)
	slices.Sort(v)
	middle := v[len(v)/2]
	if len(v)%2 == 0 {
		middle = (v[len(v)/2-1] + middle) / 2
	}
	return Spread{v[0], middle, v[len(v)-1], len(v)}
}

// Spread of the figure over all rounds.
func (f *Figure) Spread() Spread {
	var v []float64
	for _, x := range f.Values {
		v = append(v, x.Value)
	}
	return SpreadOf(v)
}

// Verdict is the result for a target.
type Verdict string

// Values of Verdict.
const (
	Met        Verdict = "met"            // in every round
	Missed     Verdict = "missed"         // in every round
	MostlyMet  Verdict = "within spread+" // the median meets it, not every round does
	MostlyMiss Verdict = "within spread-" // the median misses it, not every round does
	Unmeasured Verdict = "not measured"
)

// Judge compares a target with the measurements. A ratio is computed from two figures of the same round, so that
// whatever slows a whole round down has no effect. Rounds that lack one of the two are skipped.
func (r *Run) Judge(t Target) (Spread, Verdict) {
	ratios := r.ratios(t)
	s := SpreadOf(ratios)
	if s.N == 0 {
		return s, Unmeasured
	}
	met := 0
	for _, x := range ratios {
		if t.meets(x) {
			met++
		}
	}
	switch {
	case met == len(ratios):
		return s, Met
	case met == 0:
		return s, Missed
	case t.meets(s.Median):
		return s, MostlyMet
	}
	return s, MostlyMiss
}

// RoundsOf is the number of rounds in which the target's figures were measured.
func (r *Run) RoundsOf(t Target) int {
	t.Steady = false // it would give one ratio for all rounds
	return len(r.ratios(t))
}

func (t Target) meets(x float64) bool {
	return (t.Least == 0 || x >= t.Least) && (t.Most == 0 || x <= t.Most)
}

// Bound is the target's bound in words: "≥ 4".
func (t Target) Bound() string {
	switch {
	case t.Least != 0 && t.Most != 0:
		return fmt.Sprintf("%s to %s", digits(t.Least), digits(t.Most))
	case t.Least != 0:
		return "≥ " + digits(t.Least)
	}
	return "≤ " + digits(t.Most)
}

// digits formats three significant digits without an exponent: 0.667, 5000.
func digits(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func (r *Run) ratios(t Target) (ratios []float64) {
	ours := r.Figure(t.Ours)
	if ours == nil {
		return nil
	}
	if t.Steady {
		return ours.steadiness()
	}
	for _, v := range ours.Values {
		base := 1.0
		if t.Peer != "" {
			if base = r.value(t.Peer, v.Round); base == 0 {
				continue
			}
		}
		ratios = append(ratios, v.Value/base)
	}
	return ratios
}

// steadiness is the smallest value divided by the largest; empty for a single round.
func (f *Figure) steadiness() []float64 {
	s := f.Spread()
	if s.N < 2 || s.Most == 0 {
		return nil
	}
	return []float64{s.Least / s.Most}
}

// value is a figure's value in a round, or 0.
func (r *Run) value(id string, round int) float64 {
	if f := r.Figure(id); f != nil {
		for _, v := range f.Values {
			if v.Round == round {
				return v.Value
			}
		}
	}
	return 0
}
