package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"urdma/bench/results"
)

// Text prints the run as tables for a terminal.
func Text(to io.Writer, r *results.Run) error {
	fmt.Fprintf(to, "%s\n\n", heading(r))
	w := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	for _, row := range append([][]string{figureHead}, figureRows(r)...) {
		fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	fmt.Fprintln(w)
	for _, row := range append([][]string{targetHead}, targetRows(r)...) {
		fmt.Fprintln(w, strings.Join(row, "\t")+"\t")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, l := range r.Left {
		fmt.Fprintf(to, "not measured: %s: %s\n", l.What, firstLine(l.Why))
	}
	return nil
}

// Markdown prints the run in the form of docs/BENCHMARKS.md. Plots must be in the directory plots, under the names
// that Plots gives.
func Markdown(to io.Writer, r *results.Run, plots string) error {
	fmt.Fprintf(to, "# Benchmarks\n%s\n\n", asked)
	table(to, askedHead, askedRows(r))
	fmt.Fprintf(to, "\n%s\n\n%s\n\n## Targets\n", preface, heading(r))
	table(to, targetHead, targetRows(r))
	fmt.Fprintf(to, "\n## Figures\n")
	table(to, figureHead, figureRows(r))
	for _, l := range r.Left {
		fmt.Fprintf(to, "\nNot measured: %s: %s\n", l.What, firstLine(l.Why))
	}
	for _, s := range r.Sweeps {
		if !s.Drawn() {
			continue
		}
		fmt.Fprintf(to, "\n![%s](%s/%s.svg)\n", s.Title, plots, s.ID)
	}
	return nil
}

// asked introduces the first table of docs/BENCHMARKS.md.
const asked = "The figures that most users ask for. Each is urdma's value divided by the value of what it is compared " +
	"with. More is better, except for latency."

var askedHead = []string{"ratio", "median (least to most)"}

func askedRows(r *results.Run) (rows [][]string) {
	for _, t := range r.Targets {
		if s, verdict := r.Judge(t); t.Asked && verdict != results.Unmeasured {
			rows = append(rows, []string{t.Title, spread(s, r.RoundsOf(t), r.Rounds)})
		}
	}
	return rows
}

// preface explains docs/BENCHMARKS.md.
const preface = "`make bench BENCH='--markdown docs/BENCHMARKS.md'` wrote this page; it leaves every value in a " +
	"JSON file in build/bench. Each round measures urdma and what it is compared with one after the other, so that " +
	"whatever slows the machine down slows both. A target is met if every round meets it, and missed if none " +
	"does; otherwise it is within the spread. Older kernels are measured in virtual machines, not here."

func table(to io.Writer, head []string, rows [][]string) {
	fmt.Fprintf(to, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for _, row := range rows {
		fmt.Fprintf(to, "| %s |\n", strings.Join(row, " | "))
	}
}

// heading says what was measured, and on which machine.
func heading(r *results.Run) string {
	m := r.Machine
	governor := m.Governor
	if governor == "" {
		governor = "none"
	}
	return fmt.Sprintf("urdma %s, %s. %s, %d processors, %d MiB; %s; frequency governor: %s; load before %s, after %s "+
		"(the bench's own included). "+
		"Values are medians of %d rounds of %g s, with the least and the most in parentheses, and the number of rounds if "+
		"some lack the value. Ratios compare figures of one round.",
		r.Commit, r.Started.Format("2006-01-02 15:04 UTC"), m.Processor, m.Processors, m.MemoryMiB, m.Kernel, governor,
		loads(m.LoadBefore), loads(m.LoadAfter), r.Rounds, r.Seconds)
}

func loads(l [3]float64) string { return fmt.Sprintf("%.2f", l[0]) }

var figureHead = []string{"figure", "median (least to most)", "unit"}

func figureRows(r *results.Run) (rows [][]string) {
	for _, f := range r.Figures {
		rows = append(rows, []string{f.Title, spread(f.Spread(), f.Spread().N, r.Rounds), f.Unit})
	}
	return rows
}

var targetHead = []string{"target", "bound", "measured", ""}

func targetRows(r *results.Run) (rows [][]string) {
	for _, t := range r.Targets {
		s, verdict := r.Judge(t)
		if verdict == results.Unmeasured {
			continue // listed below
		}
		rows = append(rows, []string{t.Title, t.Bound(), spread(s, r.RoundsOf(t), r.Rounds), words(verdict)})
	}
	return rows
}

func words(v results.Verdict) string {
	switch v {
	case results.MostlyMet:
		return "met by the median, not by every round"
	case results.MostlyMiss:
		return "missed by the median, not by every round"
	}
	return string(v)
}

// spread adds the number of rounds if it is less than all.
func spread(s results.Spread, n, rounds int) string {
	var beside []string
	if s.N > 1 || n == rounds {
		beside = append(beside, fmt.Sprintf("%s to %s", number(s.Least), number(s.Most)))
	}
	if n < rounds {
		beside = append(beside, fmt.Sprintf("%d of %d rounds", n, rounds))
	}
	return fmt.Sprintf("%s (%s)", number(s.Median), strings.Join(beside, "; "))
}

// number has three significant digits.
func number(v float64) string {
	if v >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func firstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}
