package suite

import (
	"slices"

	"urdma/bench/results"
)

// ofBefore is what the IDs of the other build's figures end with.
const ofBefore = ".before"

// withBefore returns the measure's figures, and behind them those of another build, if there is one.
func (m measure) withBefore(another bool) []results.Figure {
	if !another {
		return m.figures
	}
	all := slices.Clone(m.figures)
	for _, f := range m.figures {
		f.ID, f.Title = f.ID+ofBefore, f.Title+", before"
		all = append(all, f)
	}
	return all
}

// notSlower are targets that compare each figure with that of the other build. Figures that do not depend on urdma
// are among them: their ratios show how much the machine varies.
func notSlower() (all []results.Target) {
	for _, m := range measures() {
		for _, f := range m.figures {
			t := results.Target{Title: f.Title, Ours: f.ID, Peer: f.ID + ofBefore}
			if f.Better == results.Higher {
				t.Least = 1
			} else {
				t.Most = 1
			}
			all = append(all, t)
		}
	}
	return all
}
