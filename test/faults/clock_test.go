package faults

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestClocksApart: programs in another time namespace than urdmad, as in a container, have a monotonic clock that is
// days ahead or behind. So shared data must contain no times. There are no namespaces for the clock of the day: see
// TestClockOfTheDay.
func TestClocksApart(t *testing.T) {
	for name, offsets := range map[string][2]string{"programs ahead": {"0", "500000"}, "urdmad ahead": {"500000", "0"}} {
		t.Run(name, func(t *testing.T) {
			l := labtest.New(t)
			enter := func(offset string) []string {
				return []string{"unshare", "--time", "--fork", "--kill-child", "--monotonic=" + offset, "--boottime=" + offset,
					"--"}
			}
			if out, err := exec.Command(enter("5")[0], append(enter("5")[1:], "true")...).CombinedOutput(); err != nil {
				t.Skipf("no time namespace can be had: %v %s", err, out)
			}
			start := func(offset string, argv ...string) *lab.Process {
				o := lab.Options{Env: []string{"PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + l.Dir}}
				p, err := l.Start(o, append(enter(offset), argv...)...)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			d := start(offsets[0], l.Program("urdmad"))
			ready(t, d)
			run := func(argv ...string) *lab.Process {
				return start(offsets[1], append([]string{l.Program("urdma"), "exec", "--"}, argv...)...)
			}
			for _, pair := range [][2][]string{
				{{"rping", "-s", "-a", "198.18.0.1", "-C", "200"}, {"rping", "-c", "-a", "198.18.0.1", "-C", "200", "-V"}},
				{{"ib_write_lat", "-R", "-F", "-n", "200"}, {"ib_write_lat", "-R", "-F", "-n", "200", "198.18.0.1"}},
			} {
				var server, client *lab.Process
				var err error
				for range lab.MeasuredTries {
					server = run(pair[0]...)
					awaits(t, pair[0][0]+" listens", patience, func() bool {
						show := start(offsets[0], l.Program("urdma"), "show", "listener")
						return show.Wait(patience) == nil && strings.Contains(show.Output(), pair[0][0])
					})
					client = run(pair[1]...)
					if err = client.Wait(patience); err == nil {
						err = server.Wait(patience)
					}
					server.Kill()
					if !lab.Unmeasured(client.Output() + server.Output()) {
						break
					}
				}
				if err != nil {
					t.Errorf("%v: %v\n%s%s", pair[1], err, client.Output(), server.Output())
				}
			}
			if !d.Running() {
				t.Errorf("urdmad ended:\n%s", d.Output())
			}
		})
	}
}

// dayClock are the functions that read the clock of the day, which administrators and NTP set. Go compares a
// time.Time by its monotonic reading.
var dayClock = regexp.MustCompile(`\.Unix(Nano|Milli|Micro)?\(|\.Round\(0\)|CLOCK_REALTIME|gettimeofday|\btime\(NULL\)|timedwait`)

// TestClockOfTheDay: jumps of this clock can only affect output for people. A test can't set the machine's clock, so
// it searches the source files.
func TestClockOfTheDay(t *testing.T) {
	shown := map[string]string{
		"urdmad/attach/watch/capture.go":    "the time of a captured packet",
		"urdmad/attach/watch/events.go":     "the time of an event of a trace",
		"urdmad/attach/watch/watch.go":      "the time of an event of the flight recorder",
		"urdmad/attach/watch/records.go":    "likewise, in a file",
		"urdmad/attach/watch/show.go":       "the time of a warning",
		"urdmad/attach/metrics/families.go": "since when urdmad runs",
		"verbs/lib/datapath/pollex.c":       "completion timestamps of the wall clock, for programs that ask for them",
	}
	found := map[string]bool{}
	for _, top := range []string{"urdmad", "verbs", "dpdk", "systemd"} {
		err := filepath.WalkDir(filepath.Join("../..", top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && (d.Name() == "testdata" || d.Name() == "test") {
				return orElse(err, fs.SkipDir)
			}
			if d.IsDir() || strings.HasSuffix(path, "_test.go") ||
				!slices.Contains([]string{".go", ".c", ".h"}, filepath.Ext(path)) {
				return nil
			}
			text, err := os.ReadFile(path)
			if name, _ := filepath.Rel("../..", path); dayClock.Match(text) {
				found[name] = true
				if shown[name] == "" {
					t.Errorf("%s uses the clock of the day: %s", name, bytes.TrimSpace(dayClock.Find(text)))
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		if !found[name] {
			t.Errorf("%s doesn't use the clock of the day for %s any more", name, shown[name])
		}
	}
}

func orElse(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
