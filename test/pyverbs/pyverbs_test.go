package pyverbs

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
)

// suite is the place of rdma-core's tests in Debian.
const suite = "/usr/share/doc/rdma-core/tests"

// foreign are tests for devices that a port of ours can't be.
var foreign = regexp.MustCompile(`^test_(mlx5|efa|cuda)`)

// skips are accepted reasons for skipping a test: a feature that none of our ports has, or something that the machine
// lacks. Any other reason would be a feature that programs miss.
var skips = regexp.MustCompile(strings.Join([]string{
	`^ODP is not supported`,                       // by kernels before 6.11
	`^ODP is unavailable`,                         // atomics, which the kernel can't carry out for urdmad
	`^Allocating dmabuf is not supported`,         // needs a GPU
	`[Hh]uge pages`,                               // none reserved here
	`^Device /dev/dri/`,                           // needs a GPU
	`IBV_ACCESS_FLUSH_GLOBAL`,                     // no flush operation
	`^Create (QP type 8|Raw Packet QP)`,           // raw packets: see TestRawPackets
	`^All gid indices populated`,                  // nothing to try
	`^Link layer of port=`,                        // of another transport
	`on Ethernet link layer`,                      // raw packets and flow steering: see TestRawPackets
	`^Extended CQ is not supported`,               // requested with tag matching, which only mlx5 has
	`doesn't have net interface`,                  // loopback has none below it
	`^Multicast is not supported`,                 // see docs/VERBS.md
	`^Some object imports are not supported`,      // a context is a socket to urdmad with one owner
	`^Importing a device is not supported`,        // likewise
	`^Parent Domain is not supported`,             // with the program's own allocators
	`^(Create )?(UC|Extended) QP.* not supported`, // only reliable connections as iwarp
}, "|"))

// known are tests that fail, with the reason for which that can't change.
var known = map[string]string{
	"iwarp/tests.test_rdmacm.CMTestCase.test_rdmacm_async_traffic_external_qp": "iWARP has no response that a program answers, and the test waits for one",
}

// least is the minimum number of passing tests, so that an empty run fails.
const least = 80

// The tests of rdma_cm run if the kernel has the port's address, as with a port of UDP sockets.
func TestLoopback(t *testing.T) { suiteOver(t, lab.Loopback) }
func TestUDP(t *testing.T)      { suiteOver(t, lab.UDP) }

// TestRawPackets runs the suite's tests of raw packets and of flow steering, on a port of frames that allows all of
// them: none may be skipped. The tests want to be root's.
func TestRawPackets(t *testing.T) {
	w := lab.AFPacket
	w.RawPackets = "all"
	n, urdma, tests := start(t, w)
	results := runTests(t, n, urdma, tests, "roce", "tests.test_flow", "tests.test_qp")
	passed := 0
	for name, r := range results {
		if !strings.Contains(name, "_raw_") && !strings.Contains(name, "test_flow") {
			continue
		}
		if r.verdict != "ok" {
			t.Errorf("%s: %s %s", name, r.verdict, r.why)
		}
		passed++
	}
	if passed < 10 {
		t.Errorf("%d tests, want 10 at least", passed)
	}
}

func suiteOver(t *testing.T, w lab.Wire) {
	n, urdma, tests := start(t, w)
	for _, transport := range []string{"iwarp", "ib", "roce"} {
		t.Run(transport, func(t *testing.T) { run(t, n, urdma, tests, transport) })
	}
	if !n.Daemon.Running() {
		t.Errorf("urdmad ended:\n%s", lab.Tail(n.Daemon.Output(), 30))
	}
}

// start starts urdmad, and returns its node, the command urdma, and a directory with the suite.
func start(t *testing.T, w lab.Wire) (n *lab.Node, urdma, tests string) {
	t.Helper()
	build := os.Getenv("URDMA_BUILD")
	if build == "" {
		t.Skip("URDMA_BUILD names no directory with urdmad, urdma and liburdma.so")
	}
	if _, err := os.Stat(suite); err != nil {
		t.Skipf("python3-pyverbs, with rdma-core's tests, is not installed: %v", err)
	}
	l, err := lab.New(build)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if err := l.Can(w); err != nil {
		t.Skip(err)
	}
	if n, _, err = l.Join(w, nil); err != nil {
		t.Fatal(err)
	}
	tests = filepath.Join(l.Dir, "tests")
	copySuite(t, tests)
	noKernelDevices(t, tests)
	return n, l.Program("urdma"), tests
}

// noKernelDevices replaces rdma(8), which the tests of rdma-core 56 ask for the network interface of a device. The
// real one fails without the kernel's RDMA, and every test with it.
func noKernelDevices(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "rdma"), []byte("#!/bin/sh\necho '[]'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// copySuite unpacks rdma-core's tests, except those of a single vendor.
func copySuite(t *testing.T, to string) {
	t.Helper()
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(suite, "*.py*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", suite, err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		if foreign.MatchString(name) {
			continue
		}
		if err := os.WriteFile(filepath.Join(to, strings.TrimSuffix(name, ".gz")), read(t, f), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var from io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if from, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// runTests runs the suite, or some modules of it.
func runTests(t *testing.T, n *lab.Node, urdma, tests, transport string, modules ...string) map[string]result {
	t.Helper()
	// Debian's Python, for which the package is made.
	argv := append([]string{urdma, "exec", "--transport", transport, "--", "env", "PATH=" + tests + ":" +
		os.Getenv("PATH"), "/usr/bin/python3", filepath.Join(tests, "run_tests.py"), "-v"}, modules...)
	p, err := n.Start(argv...)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(5 * time.Minute); err != nil { // status 1 if one test failed
		t.Logf("%v:\n%s", err, lab.Tail(p.Output(), 60))
	}
	return parse(p.Output())
}

func run(t *testing.T, n *lab.Node, urdma, tests, transport string) {
	results := runTests(t, n, urdma, tests, transport)
	passed := 0
	for name, r := range results {
		expected := known[name] != "" || known[transport+"/"+name] != ""
		switch {
		case r.verdict == "ok":
			passed++
		case r.verdict == "skipped" && !skips.MatchString(r.why):
			t.Errorf("%s leaves itself out: %s", name, r.why)
		case r.verdict != "skipped" && !expected:
			t.Errorf("%s: %s", name, r.verdict)
		}
	}
	t.Logf("%d of %d tests passed", passed, len(results))
	if passed < least || t.Failed() {
		t.Errorf("%d tests passed, want %d at least", passed, least)
	}
}

// result is the result of a test.
type result struct {
	verdict string // ok, skipped, FAIL or ERROR
	why     string // reason of a skipped test
}

var (
	nameOf    = regexp.MustCompile(`^\w+ \((tests\.[\w.]+)\)`)
	verdictOf = regexp.MustCompile(`\.\.\. .*?(?:(ok|FAIL|ERROR)|(skipped) ["'](.*)["'])$`)
)

// parse reads unittest's verbose output: a test's name, on that line or the next its description, and then its
// result.
func parse(out string) map[string]result {
	results := map[string]result{}
	name := ""
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if m := nameOf.FindStringSubmatch(line); m != nil {
			name = m[1]
		}
		if m := verdictOf.FindStringSubmatch(line); m != nil && name != "" {
			results[name] = result{m[1] + m[2], m[3]}
			name = ""
		}
	}
	return results
}

func TestParse(t *testing.T) {
	got := parse(`test_a (tests.test_x.X.test_a)
Says what it does ... ok
test_b (tests.test_x.X.test_b) ... skipped "Device urdma0 doesn't have net interface"
test_c (tests.test_x.X.test_c)
Two lines ... FAIL
test_d (tests.test_x.X.test_d) ... ERROR
ERROR: test_d (tests.test_x.X.test_d)
`)
	want := map[string]result{
		"tests.test_x.X.test_a": {"ok", ""},
		"tests.test_x.X.test_b": {"skipped", "Device urdma0 doesn't have net interface"},
		"tests.test_x.X.test_c": {"FAIL", ""},
		"tests.test_x.X.test_d": {"ERROR", ""},
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	for name, r := range want {
		if got[name] != r {
			t.Errorf("%s: got %v, want %v", name, got[name], r)
		}
	}
}
