package suite

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"urdma/bench/results"
)

// Options say what to measure.
type Options struct {
	Context context.Context // once it is done, nothing more is measured: the result has what is finished
	Build   string          // directory with urdmad, urdma and liburdma.so
	Before  string          // that of another build, which is measured in the same rounds to compare with; "": none
	Rounds  int             // how often each figure is measured
	Seconds float64         // length of one measurement, if its program has an option for it
	Only    *regexp.Regexp  // names of measures to select; nil: all
	Sweeps  bool            // also measure over sizes
	Limit   time.Duration   // no round begins that would end later; 0: no limit
	Log     io.Writer       // progress
}

// bench is a running bench.
type bench struct {
	Options
	places *places
	before *bench // measures Options.Before; nil: none
	result results.Run
	done   int
	total  int
	start  time.Time
	left   map[string]bool // measures that can't be made here
}

// Run measures every figure once per round. The result lists what can't be measured, because a program or root
// privileges are missing. An error means that there is no result at all.
func Run(o Options) (*results.Run, error) {
	b := &bench{Options: o, places: newPlaces(o.Build), left: map[string]bool{}, start: time.Now()}
	defer b.places.close()
	if o.Before != "" {
		b.before = &bench{Options: o, places: newPlaces(o.Before)}
		b.before.Build = o.Before
		defer b.before.places.close()
	}
	version, err := exec.Command(filepath.Join(o.Build, "urdmad"), "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(o.Build, "urdmad"), err)
	}
	words := strings.Fields(string(version))
	b.result = results.Run{Started: b.start.UTC().Truncate(time.Second), Commit: words[len(words)-1],
		Machine: machine(), Rounds: o.Rounds, Seconds: o.Seconds, Targets: targets()}
	if o.Before != "" {
		b.result.Targets = notSlower()
	}
	chosen := b.chosen()
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no measure is named %q", o.Only)
	}
	for _, m := range chosen {
		b.total += m.times(o.Rounds)
	}
	b.rounds(chosen)
	if o.Sweeps && o.Context.Err() == nil {
		b.sweep()
	}
	if o.Context.Err() != nil {
		b.omit("everything after the interruption", context.Cause(o.Context))
	}
	b.result.Machine.LoadAfter = load()
	return &b.result, nil
}

// times is the number of rounds in which a measure is taken.
func (m measure) times(rounds int) int {
	if m.rounds == 0 {
		return rounds
	}
	return min(m.rounds, rounds)
}

// sweepTime is the part of the limit reserved for sweeps.
const sweepTime = time.Minute

// rounds takes every measure round by round. It makes at least one round, and another one only if the limit leaves
// as much time as the last round took.
func (b *bench) rounds(chosen []measure) {
	limit := b.Limit
	if b.Sweeps {
		limit -= sweepTime
	}
	last := time.Duration(0)
	for round := range b.Rounds {
		if b.Limit > 0 && round > 0 && time.Since(b.start)+last > limit {
			b.result.Rounds = round
			b.omit(fmt.Sprintf("rounds after the %d.", round), fmt.Errorf("the limit of %v leaves no time", b.Limit))
			return
		}
		begin := time.Now()
		for _, m := range chosen {
			if round < m.times(b.Rounds) {
				b.measure(round, m)
			}
		}
		last = time.Since(begin)
	}
}

// Names are the names of all measures, from which Only selects.
func Names() (names []string) {
	for _, m := range measures() {
		names = append(names, m.name)
	}
	return names
}

func (b *bench) chosen() (chosen []measure) {
	for _, m := range measures() {
		if b.Only == nil || b.Only.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// wholeSeconds is Seconds for programs that accept whole seconds only.
func (b *bench) wholeSeconds() int { return max(1, int(b.Seconds+0.5)) }

// under is the length of one measurement; short is the length of one that varies little over time.
func (b *bench) under() time.Duration { return time.Duration(b.Seconds * float64(time.Second)) }
func (b *bench) short() time.Duration { return min(b.under(), time.Second) }

// measure takes a measure's figures for this round.
func (b *bench) measure(round int, m measure) {
	b.done++
	if b.left[m.name] || b.Context.Err() != nil {
		return
	}
	values, err := b.both(round, m)
	if b.Context.Err() != nil {
		return // its programs may have been interrupted, too
	}
	if err != nil {
		// In the first round the measure can't be made at all; in a later one the failure may be an accident.
		b.left[m.name] = round == 0
		b.omit(fmt.Sprintf("%s, round %d", m.name, round+1), err)
		return
	}
	for i, f := range m.withBefore(b.before != nil) {
		b.figure(f).Values = append(b.figure(f).Values, results.Value{Round: round, Value: values[i]})
	}
	b.progress(fmt.Sprintf("round %d of %d", round+1, b.Rounds),
		fmt.Sprintf("%s: %.4g %s", m.name, values[0], m.figures[0].Unit))
}

// both returns the values of a measure, and then those of the other build, if there is one. Every second round begins
// with the other build.
func (b *bench) both(round int, m measure) (values []float64, err error) {
	if b.before == nil {
		return m.run(b)
	}
	var before []float64
	if round%2 == 1 {
		before, err = m.run(b.before)
	}
	if err == nil {
		values, err = m.run(b)
	}
	if err == nil && round%2 == 0 {
		before, err = m.run(b.before)
	}
	return append(values, before...), err
}

// figure is the figure to which f's values are added.
func (b *bench) figure(f results.Figure) *results.Figure {
	if have := b.result.Figure(f.ID); have != nil {
		return have
	}
	b.result.Figures = append(b.result.Figures, &f)
	return &f
}

func (b *bench) omit(what string, err error) {
	why := strings.TrimSpace(err.Error())
	b.result.Left = append(b.result.Left, results.Omission{What: what, Why: why})
	first, _, _ := strings.Cut(why, "\n")
	b.progress("not measured", what+": "+first)
}

// progress prints a line with the estimated remaining time.
func (b *bench) progress(where, what string) {
	remaining := time.Duration(float64(time.Since(b.start)) / float64(b.done) * float64(b.total-b.done))
	fmt.Fprintf(b.Log, "%-14s %-8s %s\n", where, remaining.Round(time.Second), what)
}
