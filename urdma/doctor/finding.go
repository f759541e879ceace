package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Verdict says how serious a finding is.
type Verdict string

// The verdicts, the best first. Only a problem prevents something from working.
const (
	OK      Verdict = "ok"
	Note    Verdict = "note"
	Problem Verdict = "problem"
)

// Finding is the result of one check.
type Finding struct {
	About   string  `json:"about"`
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
	Remedy  string  `json:"remedy,omitempty"` // "" if the verdict is ok
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

// Problems counts the findings that are problems.
func Problems(list []Finding) (n int) {
	for _, f := range list {
		if f.Verdict == Problem {
			n++
		}
	}
	return n
}

// Print writes a line for each finding, and its remedy in the next line.
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
