package pages

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func cFiles(t *testing.T, patterns ...string) (files []string) {
	t.Helper()
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", p, len(found), err)
		}
		files = append(files, found...)
	}
	return files
}

// buildLibrary makes a shared library of this folder only, compiled as for liburdma.so.
func buildLibrary(t *testing.T) string {
	t.Helper()
	sources := cFiles(t, "*.c", "kernel/*.c")
	output := filepath.Join(t.TempDir(), "libpages.so")
	args := append([]string{"-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared",
		"-fvisibility=hidden", "-o", output}, sources...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return output
}

// TestExports: the library defines only the calls that it interposes; any other symbol would replace a
// program's function of the same name.
func TestExports(t *testing.T) {
	file, err := elf.Open(buildLibrary(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			got = append(got, s.Name)
		}
	}
	slices.Sort(got)
	want := []string{"_Fork", "clone", "madvise", "pthread_attr_setstack",
		"urdma_alloc", "urdma_free", "urdma_malloc", "urdma_malloc_begin", "urdma_malloc_resize", "urdma_malloc_size"}
	if !slices.Equal(got, want) {
		t.Errorf("exports %v, want %v", got, want)
	}
}

// TestPreloadedProgramRuns: a program that registers nothing is not affected.
func TestPreloadedProgramRuns(t *testing.T) {
	cmd := exec.Command("sh", "-c", "seq 100000 | sort -rn | head -1; x=$(seq 5 | wc -l); echo $x")
	cmd.Env = append(cmd.Environ(), "LD_PRELOAD="+buildLibrary(t))
	out, err := cmd.CombinedOutput()
	if got := strings.Fields(string(out)); err != nil || !slices.Equal(got, []string{"100000", "5"}) {
		t.Errorf("%v: %q", err, out)
	}
}
