package programtest

import (
	"os/exec"
	"testing"
)

// Compile makes the program output of C sources; args may have other arguments of gcc, too. It returns output.
func Compile(t testing.TB, output string, args ...string) string {
	t.Helper()
	args = append([]string{"-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-o", output},
		args...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return output
}
