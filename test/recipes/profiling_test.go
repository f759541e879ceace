package recipes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
)

// TestProfiling executes docs/profiling.md while ib_write_bw keeps a urdmad busy.
func TestProfiling(t *testing.T) {
	dir := top(t)
	need(t, []string{"perf", "ib_write_bw"})
	if out, err := exec.Command("perf", "record", "-g", "-o", filepath.Join(t.TempDir(), "try"),
		"true").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: perf may not measure here: %v: %s", err, out)
	}
	l, err := lab.New(filepath.Join(dir, "build"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	// Other tests run beside this one, so urdmad's worker and the programs give way.
	n, _, err := l.Join(lab.Loopback, lab.Config{"polling": map[string]any{"nice": 19}})
	if err != nil {
		t.Fatal(err)
	}
	busy := lab.PerftestPair(n, n, "ib_write_bw", "-D", "300")
	busy.Server = append([]string{"nice", "-n", "19"}, busy.Server...)
	busy.Client = append([]string{"nice", "-n", "19"}, busy.Client...)
	if _, err := busy.StartServer(); err != nil {
		t.Fatal(err)
	}
	client, err := n.Exec(busy.Client...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*lab.Process{client, n.Daemon} {
		worked(t, p)
	}
	env := []string{"URDMAD=" + strconv.Itoa(n.Daemon.PID()), "PROGRAM=" + strconv.Itoa(client.PID())}
	files := t.TempDir()
	blocks := sections(t, "../../docs/profiling.md")
	for _, name := range []string{"urdmad", "A program, with liburdma.so", "Flame graphs", "Go alone"} {
		if len(blocks[name]) != 1 {
			t.Fatalf("%q has %d blocks, expected one", name, len(blocks[name]))
		}
		out := typed(t, dir, env, into(files, blocks[name][0]))
		if want := map[string]string{"urdmad": "Samples", "A program, with liburdma.so": "Samples",
			"Go alone": "flat%"}[name]; !strings.Contains(out, want) {
			t.Errorf("%s: no %q in\n%s", name, want, out)
		}
		if name == "A program, with liburdma.so" {
			client.Kill() // the other blocks need no load
		}
	}
	folded, err := os.ReadFile(filepath.Join(files, "urdmad.folded"))
	if err != nil || !strings.Contains(string(folded), "engine.") {
		t.Errorf("no stack of the poll loop: %v\n%.500s", err, folded)
	}
}

// worked waits until a process has used half a second of processor time from now on; before that there is nothing to
// see.
func worked(t *testing.T, p *lab.Process) {
	t.Helper()
	first, err := p.ProcessorTime()
	for end := time.Now().Add(limit); err == nil && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var now time.Duration
		if now, err = p.ProcessorTime(); now-first > 500*time.Millisecond {
			return
		}
	}
	t.Fatalf("it does nothing: %v\n%s", err, lab.Tail(p.Output(), 20))
}

// into puts the files that a block names into a directory of the test.
func into(dir, text string) string {
	for _, file := range []string{"urdmad.data", "program.data", "urdmad.folded", "engine.pprof", "engine.test"} {
		text = strings.ReplaceAll(text, file, filepath.Join(dir, file))
	}
	return text
}
