// Command report reads what go test -json prints and tells it shorter: a line
// for each package, all that a failing test said, what was measured, and at the
// end what took longest, and what was skipped and why. It exits with 1 if anything failed.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// event is a line of go test -json (cmd/test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
	ImportPath                    string // of build-output
}

// summary is what the end of the report needs.
type summary struct {
	passed, failed int
	skipped        []string
	took           []took // tests that are in no other, and packages
}

// took is how long a test or package took.
type took struct {
	name    string
	seconds float64
}

// slowest is how many the report names.
const slowest = 20

func main() {
	s, err := report(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	s.print(os.Stdout)
	if s.failed > 0 {
		os.Exit(1)
	}
}

func report(in io.Reader, out io.Writer) (s summary, err error) {
	said := map[string][]string{} // by package and test
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // not of go test: its own complaint
			continue
		}
		key := e.Package + " " + e.Test
		switch e.Action {
		case "output":
			if said[key] = append(said[key], e.Output); strings.Contains(e.Output, "MEASURED") {
				fmt.Fprint(out, e.Output)
			}
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "pass", "fail", "skip":
			s.ended(&e, said[key], out)
			delete(said, key)
		}
	}
	return s, lines.Err()
}

// ended counts a test or package and prints of it what matters.
func (s *summary) ended(e *event, said []string, out io.Writer) {
	if !strings.Contains(e.Test, "/") && e.Action != "skip" {
		s.add(strings.TrimSpace(e.Package+" "+e.Test), e.Elapsed)
	}
	if e.Test == "" {
		s.endedPackage(e, said, out)
		return
	}
	switch e.Action {
	case "pass":
		s.passed++
	case "skip":
		s.skipped = append(s.skipped, fmt.Sprintf("%s %s: %s", e.Package, e.Test, reason(said)))
	case "fail":
		s.failed++
		fmt.Fprint(out, strings.Join(said, ""))
	}
}

// add counts what something took; the end-to-end tests are a package that runs in parts.
func (s *summary) add(name string, seconds float64) {
	if i := slices.IndexFunc(s.took, func(t took) bool { return t.name == name }); i >= 0 {
		s.took[i].seconds += seconds
		return
	}
	s.took = append(s.took, took{name, seconds})
}

// endedPackage prints go test's own last line of a package, or all that was
// said outside tests if it failed: panics and timeouts stand there.
func (s *summary) endedPackage(e *event, said []string, out io.Writer) {
	if e.Action == "fail" {
		s.failed++
		fmt.Fprint(out, strings.Join(said, ""))
		return
	}
	for _, line := range said {
		if strings.HasPrefix(line, "ok ") {
			fmt.Fprint(out, line)
		}
	}
}

// reason is the last thing a skipped test said, without the place in the file.
func reason(said []string) string {
	why := "no reason given"
	for _, line := range said {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if _, text, ok := strings.Cut(line, ".go:"); ok {
			_, line, _ = strings.Cut(text, ": ")
		}
		why = line
	}
	return why
}

func (s *summary) print(out io.Writer) {
	slices.SortStableFunc(s.took, func(a, b took) int { return -cmp.Compare(a.seconds, b.seconds) })
	fmt.Fprintln(out, "\nWhat took longest, tests and packages, in seconds:")
	for _, v := range s.took[:min(len(s.took), slowest)] {
		fmt.Fprintf(out, "  %7.1f  %s\n", v.seconds, v.name)
	}
	if len(s.skipped) > 0 {
		fmt.Fprintln(out, "\nSkipped, and why:")
		for _, line := range s.skipped {
			fmt.Fprintln(out, "  "+line)
		}
	}
	verdict := "PASS"
	if s.failed > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(out, "\n%s: %d passed, %d failed, %d skipped\n", verdict, s.passed, s.failed, len(s.skipped))
}
