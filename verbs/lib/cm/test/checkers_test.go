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

// TestCheckers runs every case under ThreadSanitizer and under valgrind; TestCases uses AddressSanitizer.
// valgrind runs code compiled without any sanitizer.
func TestCheckers(t *testing.T) {
	if os.Getenv("URDMA_LONG") == "" {
		t.Skip("takes minutes; make test-long")
	}
	plain := filepath.Join(t.TempDir(), "plain")
	compile(t, plain, casesSources(t)...)
	names, err := exec.Command(plain).Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, argv := range map[string][]string{
		"thread":   {"setarch", "-R", casesProgram(t, "thread")},
		"valgrind": {"valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite", plain},
	} {
		if _, err := exec.LookPath(argv[0]); err != nil {
			t.Log(err)
			continue
		}
		for _, c := range strings.Fields(string(names)) {
			t.Run(name+"/"+c, func(t *testing.T) {
				if out, err := exec.Command(argv[0], append(argv[1:], c)...).CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// TestRsocketsSanitizers runs the cases of rsockets, on a urdmad, with the library built into
// the program under sanitizers.
func TestRsocketsSanitizers(t *testing.T) {
	if os.Getenv("URDMA_LONG") == "" {
		t.Skip("takes minutes; make test-long")
	}
	// AddressSanitizer does not follow cancelled threads, nor ThreadSanitizer children of a process with threads. A
	// program that closes the library's descriptors races with it.
	for sanitizers, left := range map[string][]string{"address,undefined": {"cancelled"},
		"thread": {"fork", "closed_descriptors"}} {
		for _, program := range []string{"streams", "datagrams"} {
			binary := rsocketsSanitized(t, program, sanitizers)
			names, err := exec.Command("setarch", "-R", binary).Output()
			if err != nil {
				t.Fatal(err)
			}
			for i, name := range strings.Fields(string(names)) {
				if slices.Contains(left, name) {
					continue
				}
				t.Run(sanitizers+"/"+program+"/"+name, func(t *testing.T) {
					d := startDaemon(t)
					d.extra = []string{"LD_PRELOAD=", "ASAN_OPTIONS=detect_leaks=0"} // devices live as long as the process
					d.start(t, transportOf(i), "setarch", "-R", binary, name, address).succeed(t)
				})
			}
		}
	}
}

// rsocketsSanitized builds a program of testdata/rsockets and the library into one, without
// page conversion, as a sanitizer's runtime owns the address space.
func rsocketsSanitized(t *testing.T, name, sanitizers string) string {
	t.Helper()
	args := []string{"-Wno-tsan", "-fexceptions", "-rdynamic", "-fvisibility=hidden",
		"-fno-sanitize-recover=all", "-fsanitize=" + sanitizers, "../../test/testdata/alone/pages.c"}
	for _, folder := range []string{"../..", "../../session", "../../datapath", "../../device", "../../memory",
		"../../datagram", "..", "../../rsockets",
		"../../rsockets/datagrams", "testdata/rsockets/" + name} {
		sources, _ := filepath.Glob(folder + "/*.c")
		args = append(args, slices.DeleteFunc(sources, func(s string) bool { return filepath.Base(s) == "first_abi.c" })...)
	}
	return programtest.Compile(t, filepath.Join(t.TempDir(), name), append(args, "-lpthread", "-ldl")...)
}
