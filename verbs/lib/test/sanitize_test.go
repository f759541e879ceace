package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urdma/test/programtest"
)

// sanitized builds the cases and the library's libibverbs part into one program, without the parts that a
// sanitizer's runtime does not support: pages/, and versioned symbols.
func sanitized(t *testing.T, sanitizers string) string {
	t.Helper()
	var sources []string
	for _, folder := range []string{"..", "../session", "../datapath", "../device", "../memory", "../datagram"} {
		found, _ := filepath.Glob(folder + "/*.c")
		sources = append(sources, found...)
	}
	sources = slices.DeleteFunc(sources, func(s string) bool { return filepath.Base(s) == "first_abi.c" })
	cases, _ := filepath.Glob("testdata/*.c")
	args := append([]string{"-rdynamic",
		"-Wno-tsan", // about fences: what they order is also ordered by atomics on the same variables
		"-fvisibility=hidden", "testdata/alone/pages.c"}, append(sources, cases...)...)
	if sanitizers != "" {
		args = append(args, "-fno-sanitize-recover=all", "-fsanitize="+sanitizers)
	}
	return programtest.Compile(t, filepath.Join(t.TempDir(), "sanitized"), append(args, "-lpthread", "-ldl")...)
}

// TestSanitizers runs the cases with AddressSanitizer and UndefinedBehaviorSanitizer, in long runs also with
// ThreadSanitizer.
func TestSanitizers(t *testing.T) {
	// The cases left out compare with or load other builds of the library, or cancel threads, or fork a
	// process with threads, which ThreadSanitizer doesn't support.
	without := map[string][]string{
		"address,undefined": {"strings", "provider", "reader_cancelled"},
		"thread":            {"strings", "provider", "reader_cancelled", "fork"},
	}
	if os.Getenv("URDMA_LONG") == "" {
		delete(without, "thread")
	}
	for sanitizers, left := range without {
		binary := sanitized(t, sanitizers)
		names, err := exec.Command("setarch", "-R", binary).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(string(names)) {
			if slices.Contains(left, name) {
				continue
			}
			t.Run(sanitizers+"/"+name, func(t *testing.T) { runSanitized(t, binary, name) })
		}
	}
}

// TestValgrind runs the cases under valgrind, compiled without a sanitizer.
func TestValgrind(t *testing.T) {
	if os.Getenv("URDMA_LONG") == "" {
		t.Skip("takes minutes; make test-long")
	}
	if _, err := exec.LookPath("valgrind"); err != nil {
		t.Skip(err)
	}
	binary := sanitized(t, "")
	names, err := exec.Command(binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(names)) {
		if slices.Contains([]string{"strings", "provider", "reader_cancelled"}, name) {
			continue // as in TestSanitizers
		}
		t.Run(name, func(t *testing.T) {
			d := startUrdmad(t)
			d.prepare(name)
			if out, err := run(t, d, []string{"LD_PRELOAD="}, "valgrind", "-q", "--error-exitcode=9", "--fair-sched=yes", binary,
				name); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestQueue compares queue.c with a model of a queue.
func TestQueue(t *testing.T) { runAlone(t, "queue") }

// TestYield tests at which empty polls and posts yield.c yields.
func TestYield(t *testing.T) { runAlone(t, "yield") }

// runAlone builds one file of the data path with its test program, and runs it.
func runAlone(t *testing.T, name string) {
	binary := programtest.Compile(t, filepath.Join(t.TempDir(), name), "-fno-sanitize-recover=all",
		"-fsanitize=address,undefined", "testdata/alone/"+name+".c", "../datapath/"+name+".c", "-lpthread")
	if out, err := exec.Command("setarch", "-R", binary).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func runSanitized(t *testing.T, binary, name string) {
	d := startUrdmad(t)
	d.prepare(name)
	// Lists, devices and sessions exist as long as the process, so leak detection is off. Newer kernels
	// randomise addresses more than these runtimes support.
	out, err := run(t, d, []string{"LD_PRELOAD=", "ASAN_OPTIONS=detect_leaks=0"}, "setarch", "-R", binary, name)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
