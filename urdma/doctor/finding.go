package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Verdict is what a finding means.
type Verdict string

// The verdicts, the best first. Only a problem keeps something from working.
const (
	OK      Verdict = "ok"
	Note    Verdict = "note"
	Problem Verdict = "problem"
)

// Finding is one thing looked at.
type Finding struct {
	About   string  `json:"about"`
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
	Remedy  string  `json:"remedy,omitempty"` // "" for what is ok
}

func ok(about, format string, args ...any) Finding {
	return Finding{about, OK, fmt.Sprintf(format, args...), ""}
}

func note(about, remedy, format string, args ...any) Finding {
	return Finding{about, Note, fmt.Sprintf(format, args...), remedy}
}

func problem(about, remedy, format string, args ...any) Finding {
	return Finding{about, Problem, fmt.Sprintf(format, args...), remedy}
}

// Problems counts them.
func Problems(list []Finding) (n int) {
	for _, f := range list {
		if f.Verdict == Problem {
			n++
		}
	}
	return n
}

// Print writes a line for each finding, and under it what helps.
func Print(w io.Writer, list []Finding) error {
	for _, f := range list {
		if _, err := fmt.Fprintf(w, "%-8s %s: %s\n", f.Verdict, f.About, oneLine(f.Text)); err != nil {
			return err
		}
		if f.Remedy == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "         -> %s\n", f.Remedy); err != nil {
			return err
		}
	}
	return nil
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }
