package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// urdmaBinary is the command under test, built once, with a library next to it that only reports that it was
// loaded.
var urdmaBinary string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "urdma-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // other users run it, too
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	urdmaBinary = filepath.Join(dir, "urdma")
	if out, err := exec.Command("go", "build", "-o", urdmaBinary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// compile builds C source with gcc, or skips the test.
func compile(t *testing.T, output, source string, flags ...string) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("SKIPPED: gcc is not installed, and this test compiles a program to run")
	}
	file := filepath.Join(t.TempDir(), "source.c")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-Wall", "-Wextra", "-Werror", "-o", output, file}, flags...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %q: %v\n%s", args, err, out)
	}
	return output
}
