package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"urdma/bench/results"
)

func sample() *results.Run {
	return &results.Run{
		Commit: "0.1.0-gabc", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Rounds: 2, Seconds: 2,
		Machine: results.Machine{Processor: "A CPU", Processors: 2, MemoryMiB: 1000, Kernel: "Linux 6.1"},
		Figures: []*results.Figure{
			{ID: "a", Title: "ours", Unit: "Gb/s", Better: results.Higher,
				Values: []results.Value{{Round: 0, Value: 40}, {Round: 1, Value: 60}}},
			{ID: "b", Title: "theirs", Unit: "Gb/s", Better: results.Higher,
				Values: []results.Value{{Round: 0, Value: 10}, {Round: 1, Value: 20}}},
		},
		Targets: []results.Target{
			{Title: "beside theirs", Ours: "a", Peer: "b", Least: 3.5},
			{Title: "never measured", Ours: "c", Least: 1},
		},
		Sweeps: []results.Sweep{{ID: "bandwidth", Title: "by size", X: "bytes", Unit: "Gb/s", Curves: []results.Curve{
			{Name: "one", Points: []results.Point{{X: 2, Y: 1}, {X: 4, Y: 0}, {X: 8, Y: 3}}}, {Name: "none"}}},
			{ID: "nothing", Title: "nothing", Curves: []results.Curve{{Name: "none"}}}},
		Left: []results.Omission{{What: "third", Why: "root\nmore lines"}},
	}
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	if err := Text(&out, sample()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A CPU, 2 processors", "governor: none", "50 (40 to 60)", "3.5 (3 to 4)",
		"met by the median, not by every round", "not measured: third: root\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "never measured") {
		t.Errorf("has a target without figures:\n%s", &out)
	}
}

// Figures and ratios that are missing in some rounds show their number of rounds.
func TestRoundsThatLackAFigure(t *testing.T) {
	r := sample()
	r.Rounds = 3
	r.Figures[1].Values = r.Figures[1].Values[:1]
	r.Targets = append(r.Targets, results.Target{Title: "steady", Ours: "a", Least: 0.5, Steady: true, Asked: true})
	var out bytes.Buffer
	if err := Markdown(&out, r, "benchmarks"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| ours | 50 (40 to 60; 2 of 3 rounds) |", "| theirs | 10 (1 of 3 rounds) |",
		"| beside theirs | ≥ 3.5 | 4 (1 of 3 rounds) | met |", "| steady | ≥ 0.5 | 0.667 (2 of 3 rounds) | met |",
		"# Benchmarks\n" + asked + "\n\n| ratio | median (least to most) |\n|---|---|\n| steady | 0.667 (2 of 3 rounds) " +
			"|\n\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, &out)
		}
	}
}

func TestMarkdownHasTables(t *testing.T) {
	var out bytes.Buffer
	if err := Markdown(&out, sample(), "benchmarks"); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "nothing.svg") {
		t.Errorf("shows a plot that nobody drew:\n%s", &out)
	}
	for _, want := range []string{"# Benchmarks\n", "| ours | 50 (40 to 60) | Gb/s |\n", "|---|---|---|\n",
		"![by size](benchmarks/bandwidth.svg)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, &out)
		}
	}
}

// Points at 0 have no logarithm, and curves may be empty.
func TestPlots(t *testing.T) {
	dir := t.TempDir()
	if err := Plots(dir, sample()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "bandwidth.svg"))
	if err != nil || !bytes.Contains(text, []byte("<path")) || !bytes.Contains(text, []byte("</svg>")) {
		t.Errorf("bandwidth.svg is no drawing: %v", err)
	}
}
