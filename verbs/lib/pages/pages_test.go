package pages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The C sources, compiled the way pages.mk compiles them.
var compileFlags = []string{
	"-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-fvisibility=hidden",
	"-Wall", "-Wextra", "-Werror", "-I.",
	"-rdynamic", "-pthread",
}

const (
	jemalloc    = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
	nobody      = 65534
	skipStatus  = 77
	fixedSeed   = 1
	testTimeout = 2 * time.Minute
)

// binaries holds the torture program with PROCMAP_QUERY; under "text" the one
// that parses /proc/self/maps as kernels before 6.11 need it, and under "calls"
// one that counts its system calls.
var binaries = map[string]string{}

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	// Not t.TempDir: an ordinary user must be able to reach it.
	dir, err := os.MkdirTemp("", "urdma-pages")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for name, flags := range map[string][]string{
		"query": nil, "text": {"-DURDMA_PAGES_PARSE_TEXT"}, "calls": {"-DURDMA_PAGES_COUNT_CALLS"},
	} {
		binaries[name] = filepath.Join(dir, name)
		if err := compile(binaries[name], flags); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

func compile(output string, extra []string) error {
	args := append(append([]string{}, compileFlags...), extra...)
	args = append(args, "-o", output)
	for _, pattern := range []string{"*.c", "kernel/*.c", "testdata/*.c"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		args = append(args, files...)
	}
	if out, err := exec.Command("gcc", append(args, "-ldl")...).CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return nil
}

// way is how a torture program is run.
type way struct {
	name, binary string
	uid          int
	preload      string
	group        string // the cgroup that it is put into; "": its parent's
	keep         bool   // whatever the program maps stays shared when it is deregistered
}

func ways() []way {
	all := []way{
		{name: "glibc", binary: "query", uid: os.Getuid()},
		{name: "jemalloc", binary: "query", uid: os.Getuid(), preload: jemalloc},
		{name: "text", binary: "text", uid: os.Getuid()},
		{name: "keep", binary: "query", uid: os.Getuid(), keep: true},
	}
	if os.Getuid() == 0 {
		all = append(all,
			way{name: "user", binary: "query", uid: nobody},
			way{name: "user-keep", binary: "query", uid: nobody, keep: true},
			way{name: "user-jemalloc", binary: "query", uid: nobody, preload: jemalloc})
	}
	return all
}

func (w way) command(ctx context.Context, test string, rounds int) *exec.Cmd {
	argv := []string{binaries[w.binary], test, strconv.Itoa(rounds), strconv.Itoa(fixedSeed)}
	if w.group != "" {
		argv = append([]string{"sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, w.group}, argv...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	// jemalloc then purges at once, and relies on what it purged being zero.
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+w.preload,
		"MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0")
	if w.keep {
		cmd.Env = append(cmd.Env, "URDMA_TORTURE_KEEP=1")
	}
	if w.uid != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: uint32(w.uid), Gid: nobody},
		}
	}
	return cmd
}

// needsQuery names the tests with so many mappings that walking them as text for
// every registration takes hours.
var needsQuery = map[string]bool{"limits": true, "unreadable": true}

// needsGlibc names the tests of what glibc's allocator does and no other.
var needsGlibc = map[string]bool{"brk": true, "scatter": true}

func (w way) missing(test string) string {
	if w.binary == "text" && needsQuery[test] {
		return "this takes hours without PROCMAP_QUERY"
	}
	if w.preload == "" {
		return ""
	}
	if _, err := os.Stat(w.preload); err != nil {
		return "no " + w.preload + ": install libjemalloc2"
	}
	if needsGlibc[test] {
		return "this is about glibc's heap"
	}
	return ""
}

func (w way) run(t *testing.T, test string, rounds int) {
	if why := w.missing(test); why != "" {
		t.Skip(why)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	out, err := w.command(ctx, test, rounds).CombinedOutput()
	if len(out) > 0 {
		t.Logf("%s", strings.TrimSpace(string(out)))
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == skipStatus {
		t.Skipf("the program skipped it: %s", out)
	}
	if err != nil {
		t.Fatalf("torture %s %d %d as %s: %v", test, rounds, fixedSeed, w.name, err)
	}
}

// torture runs one test of the C program in every way; rounds of 0 leave the
// number to the program, and URDMA_LONG multiplies the others by four.
func torture(t *testing.T, test string, rounds int) {
	if os.Getenv("URDMA_LONG") != "" {
		rounds *= 4
	}
	if os.Getuid() != 0 {
		t.Log("not root: the ways of an ordinary user only")
	}
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) { w.run(t, test, rounds) })
	}
}

func TestNoWriteIsLost(t *testing.T)            { torture(t, "writers", 250) }
func TestNoWriteIsLostInTheHeap(t *testing.T)   { torture(t, "heap_writers", 500) }
func TestSystemCallsIntoEdgePages(t *testing.T) { torture(t, "system_calls", 500) }
func TestOverlap(t *testing.T)                  { torture(t, "overlap", 800) }
func TestRealloc(t *testing.T)                  { torture(t, "realloc", 30) }
func TestCallocAfterFree(t *testing.T)          { torture(t, "calloc", 300) }
func TestForkWhileAllocating(t *testing.T)      { torture(t, "fork", 15) }
func TestForkWhileDaemonWrites(t *testing.T)    { torture(t, "fork_daemon", 30) }
func TestForkIsOneMoment(t *testing.T)          { torture(t, "fork_moment", 30) }
func TestForkFromSeveralThreads(t *testing.T)   { torture(t, "fork_together", 5) }
func TestForkAdvice(t *testing.T)               { torture(t, "fork_advice", 0) }
func TestForkAdvisedBefore(t *testing.T)        { torture(t, "fork_advised_before", 0) }
func TestForkCausality(t *testing.T)            { torture(t, "fork_causality", 300) }
func TestForkCausalityOfEdges(t *testing.T)     { torture(t, "fork_causality_edges", 300) }
func TestForkWithoutDescriptors(t *testing.T)   { torture(t, "fork_descriptors", 0) }
func TestPeerProcess(t *testing.T)              { torture(t, "peer", 0) }
func TestPinned(t *testing.T)                   { torture(t, "pinned", 0) }
func TestRefused(t *testing.T)                  { torture(t, "refused", 0) }
func TestInterposedCalls(t *testing.T)          { torture(t, "interposed", 0) }
func TestReusedAddress(t *testing.T)            { torture(t, "reuse", 0) }
func TestUnreadableMemory(t *testing.T)         { torture(t, "unreadable", 0) }
func TestUntouchedMemory(t *testing.T)          { torture(t, "untouched", 25) }
func TestBrk(t *testing.T)                      { torture(t, "brk", 0) }
func TestConditions(t *testing.T)               { torture(t, "conditions", 0) }
func TestWithoutUserfaultfd(t *testing.T)       { torture(t, "no_userfaultfd", 0) }
func TestStaticData(t *testing.T)               { torture(t, "static", 0) }
func TestKept(t *testing.T)                     { torture(t, "kept", 0) }
func TestBorn(t *testing.T)                     { torture(t, "born", 0) }
func TestHuge(t *testing.T)                     { torture(t, "huge", 20) }
func TestDirectIO(t *testing.T)                 { torture(t, "direct", 200) }
func TestCost(t *testing.T)                     { torture(t, "cost", 0) }

// TestCalls: how many system calls a registration makes.
func TestCalls(t *testing.T) {
	way{name: "glibc", binary: "calls", uid: os.Getuid()}.run(t, "cost", 0)
}

// TestManyRounds takes 100,000 rounds as root; the other ways take fewer
// unless URDMA_LONG is set.
func TestManyRounds(t *testing.T) {
	for i, w := range ways() {
		rounds := 2000
		if i == 0 || os.Getenv("URDMA_LONG") != "" {
			rounds = 100000
		}
		t.Run(w.name, func(t *testing.T) { w.run(t, "rounds", rounds) })
	}
}

// TestScatteredRegistrations: given back, a heap is one mapping again.
func TestScatteredRegistrations(t *testing.T) {
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) { w.run(t, "scatter", 400) })
	}
}

func TestManyMappings(t *testing.T) {
	if os.Getenv("URDMA_LONG") == "" {
		t.Skip("URDMA_LONG isn't set: the limit of mappings")
	}
	torture(t, "limits", 0)
}
