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

// Flags for the C sources and the test programs.
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

// binaries has the test program with PROCMAP_QUERY, and under "text" the one that parses /proc/self/maps as
// kernels before 6.11 require.
var binaries = map[string]string{}

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	// Not t.TempDir: an ordinary user must be able to access it.
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
	for name, flags := range map[string][]string{"query": nil, "text": {"-DURDMA_PAGES_PARSE_TEXT"}} {
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

// way is a way to run a test program.
type way struct {
	name, binary string
	uid          int
	preload      string
}

func ways() []way {
	all := []way{
		{name: "glibc", binary: "query", uid: os.Getuid()},
		{name: "jemalloc", binary: "query", uid: os.Getuid(), preload: jemalloc},
		{name: "text", binary: "text", uid: os.Getuid()},
	}
	if os.Getuid() == 0 {
		all = append(all, way{name: "user", binary: "query", uid: nobody})
	}
	return all
}

func (w way) command(ctx context.Context, test string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binaries[w.binary], test, strconv.Itoa(0), strconv.Itoa(fixedSeed))
	// jemalloc then purges at once, and relies on purged memory being zero.
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+w.preload,
		"MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0")
	if w.uid != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: uint32(w.uid), Gid: nobody},
		}
	}
	return cmd
}

func (w way) run(t *testing.T, test string) {
	if _, err := os.Stat(w.preload); w.preload != "" && err != nil {
		t.Skip("no " + w.preload + ": install libjemalloc2")
	}
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	out, err := w.command(ctx, test).CombinedOutput()
	if len(out) > 0 {
		t.Logf("%s", strings.TrimSpace(string(out)))
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == skipStatus {
		t.Skipf("the program skipped it: %s", out)
	}
	if err != nil {
		t.Fatalf("torture %s 0 %d as %s: %v", test, fixedSeed, w.name, err)
	}
}

// torture runs one test of the C program in every way.
func torture(t *testing.T, test string) {
	if os.Getuid() != 0 {
		t.Log("not root: the ways of an ordinary user only")
	}
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) { w.run(t, test) })
	}
}

func TestAnswers(t *testing.T)                { torture(t, "answers") }
func TestAnswersWithoutProc(t *testing.T)     { torture(t, "no_proc") }
func TestAlloc(t *testing.T)                  { torture(t, "allocated") }
func TestArenaModel(t *testing.T)             { torture(t, "model") }
func TestManyPieces(t *testing.T)             { torture(t, "pieces") }
func TestThreads(t *testing.T)                { torture(t, "threads") }
func TestAdvice(t *testing.T)                 { torture(t, "advice") }
func TestFork(t *testing.T)                   { torture(t, "forked") }
func TestForkBesideThreads(t *testing.T)      { torture(t, "fork_threads") }
func TestKindsOfFork(t *testing.T)            { torture(t, "fork_kinds") }
func TestForkOfStoppedChild(t *testing.T)     { torture(t, "fork_ends") }
func TestForkWithoutDescriptors(t *testing.T) { torture(t, "fork_descriptors") }
func TestForkOfOwnStacks(t *testing.T)        { torture(t, "fork_stacks") }
func TestForkInSignalHandler(t *testing.T)    { torture(t, "fork_signal") }
func TestForkMappedOver(t *testing.T)         { torture(t, "fork_mapped") }

// TestSanitizers runs the cases under sanitizers. ThreadSanitizer doesn't follow forks of a
// process with threads, nor stacks of the program's own; cases of one thread that reserve much
// memory take it minutes.
func TestSanitizers(t *testing.T) {
	if os.Getenv("URDMA_LONG") == "" {
		t.Skip("takes minutes; make test-long")
	}
	for sanitizers, cases := range map[string][]string{
		"address,undefined": {"advice", "allocated", "answers", "fork_descriptors", "fork_ends", "fork_kinds", "fork_mapped",
			"fork_signal", "fork_stacks", "fork_threads",
			"forked", "model", "no_proc", "pieces", "threads"},
		"thread": {"advice", "allocated", "answers", "no_proc", "threads"},
	} {
		binary := filepath.Join(t.TempDir(), "sanitized")
		if err := compile(binary, []string{"-O1", "-Wno-tsan", "-fno-sanitize-recover=all",
			"-fsanitize=" + sanitizers}); err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			t.Run(sanitizers+"/"+c, func(t *testing.T) {
				// Newer kernels randomise addresses more than these runtimes expect.
				cmd := exec.Command("setarch", "-R", binary, c, "0", strconv.Itoa(fixedSeed))
				cmd.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=0") // what is reserved stays
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}
