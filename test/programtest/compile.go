package programtest

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Compile makes the program output of C sources; args may have other arguments of gcc, too. It returns output.
// Where URDMA_BUILD names a directory, a program whose sources, as the preprocessor leaves them, and arguments have
// not changed is copied from there.
func Compile(t testing.TB, output string, args ...string) string {
	t.Helper()
	args = append([]string{"-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", "-Werror"}, args...)
	kept := keptProgram(t, args)
	if kept != "" && exec.Command("cp", kept, output).Run() == nil {
		return output
	}
	gcc(t, append(args, "-o", output)...)
	if kept != "" {
		keep(t, output, kept)
	}
	return output
}

// keptProgram is where a program of such arguments is kept, "" for nowhere.
func keptProgram(t testing.TB, args []string) string {
	t.Helper()
	build := os.Getenv("URDMA_BUILD")
	// What a test has just written or linked is another one each time.
	if build == "" || strings.Contains(strings.Join(args, " "), os.TempDir()) {
		return ""
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q\n", args)
	sum.Write(gcc(t, append([]string{"-E"}, args...)...))
	sum.Write(gcc(t, "--version"))
	return filepath.Join(build, "compiled", fmt.Sprintf("%x", sum.Sum(nil)[:16]))
}

// keep copies a program to where it is kept, if it can. It appears there whole.
func keep(t testing.TB, program, kept string) {
	t.Helper()
	temporary := fmt.Sprintf("%s.%x", kept, rand.Uint64()) // tests in parallel may keep the same program
	if os.MkdirAll(filepath.Dir(kept), 0o755) == nil && exec.Command("cp", program, temporary).Run() == nil {
		_ = os.Rename(temporary, kept) // the next run compiles again
	}
}

// gcc runs it and returns its output.
func gcc(t testing.TB, args ...string) []byte {
	t.Helper()
	var said strings.Builder
	c := exec.Command("gcc", args...)
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("gcc: %v\n%s%s", err, out, said.String())
	}
	return out
}
