package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mallocPreload is LD_PRELOAD with the library of urdma exec --share-malloc, and others
// before it.
func mallocPreload(t *testing.T, others ...string) string {
	t.Helper()
	if out, err := exec.Command("make", "-s", "-C", root, "-f", "verbs/lib/lib.mk", "build/liburdma.d/liburdma-malloc.so").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	last, err := filepath.Abs(filepath.Join(root, "build/liburdma.d/liburdma-malloc.so"))
	if err != nil {
		t.Fatal(err)
	}
	return "LD_PRELOAD=" + strings.Join(append(append([]string{preload(t)}, others...), last), ":")
}

// TestShareMalloc: large pieces of malloc's are shared as long as there are some, small
// ones and all others are the C library's, and nothing else is different.
func TestShareMalloc(t *testing.T) {
	d := startUrdmad(t)
	binary := compile(t, filepath.Join(t.TempDir(), "malloc"), "-fno-builtin", "testdata/alone/malloc.c")
	if out, err := run(t, d, []string{mallocPreload(t), "URDMA_SHARE_MALLOC=16M"}, binary); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := run(t, d, []string{mallocPreload(t)}, binary, "none"); err != nil {
		t.Errorf("not asked to: %v\n%s", err, out)
	}
}

// TestShareMallocBesideAnother: a program that brings an allocator keeps it, and shares nothing.
func TestShareMallocBesideAnother(t *testing.T) {
	const jemalloc = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
	if _, err := os.Stat(jemalloc); err != nil {
		t.Skip("no " + jemalloc + ": install libjemalloc2")
	}
	binary := compile(t, filepath.Join(t.TempDir(), "malloc"), "-fno-builtin", "testdata/alone/malloc.c")
	if out, err := run(t, startUrdmad(t), []string{mallocPreload(t, jemalloc), "URDMA_SHARE_MALLOC=16M"}, binary, "none"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
