// Command report shortens the output of go test -json: a line for each package, all output of failing tests,
// measurements, and at the end the slowest tests, and the skipped ones with reasons. It exits with 1 if anything
// failed.
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
	ImportPath                    string // of the output of a failed build
}

// summary has the data for the end of the report.
type summary struct {
	passed, failed int
	skipped        []string
	took           []took // tests that are not subtests, and packages
}

// took is how long a test or package took.
type took struct {
	name    string
	seconds float64
}

// slowest is the number of slow tests in the report.
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
			fmt.Fprintln(out, lines.Text()) // not from go test: an error message of its own
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

// ended counts a test or package and prints its important output.
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

// add adds the duration of a test or package. The end-to-end tests are one package that runs in parts.
func (s *summary) add(name string, seconds float64) {
	if i := slices.IndexFunc(s.took, func(t took) bool { return t.name == name }); i >= 0 {
		s.took[i].seconds += seconds
		return
	}
	s.took = append(s.took, took{name, seconds})
}

// endedPackage prints go test's own last line about a package, or, if it failed, all output outside tests: panics and
// timeouts are there.
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

// reason returns the last line of a skipped test, without its place in the file.
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
