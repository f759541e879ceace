package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"urdma/test/programtest"
)

// mallocPreload returns LD_PRELOAD as urdma exec sets it, with other libraries before the malloc library.
func mallocPreload(t *testing.T, others ...string) string {
	t.Helper()
	if out, err := exec.Command("make", "-s", "-C", root, "-f", "verbs/lib/lib.mk",
		"build/liburdma.d/liburdma-malloc.so").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	last, err := filepath.Abs(filepath.Join(root, "build/liburdma.d/liburdma-malloc.so"))
	if err != nil {
		t.Fatal(err)
	}
	return "LD_PRELOAD=" + strings.Join(append(append([]string{preload(t)}, others...), last), ":")
}

func mallocProgram(t *testing.T, args ...string) string {
	t.Helper()
	return programtest.Compile(t, filepath.Join(t.TempDir(), "malloc"),
		append([]string{"-fno-builtin", "testdata/alone/malloc.c"}, args...)...)
}

// TestMalloc: page-aligned allocations are shared, or also large ones as long as there is memory, or none;
// nothing else differs.
func TestMalloc(t *testing.T) {
	d, binary := startUrdmad(t), mallocProgram(t)
	for wish, what := range map[string]string{"16M": "large", "": "pages", "0": "none"} {
		if out, err := run(t, d, []string{mallocPreload(t), "URDMA_SHARE_MALLOC=" + wish}, binary, what); err != nil {
			t.Errorf("%q: %v\n%s", wish, err, out)
		}
	}
}

// TestMallocOfOthers: a program with its own allocator, however it is provided, keeps it and shares nothing.
func TestMallocOfOthers(t *testing.T) {
	const dir = "/usr/lib/x86_64-linux-gnu/"
	d, plain := startUrdmad(t), mallocProgram(t)
	for _, name := range []string{"libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libtcmalloc.so.4", "libmimalloc.so.2"} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(dir + name); err != nil {
				t.Skipf("SKIPPED: no %s", name)
			}
			linked := mallocProgram(t, "-Wl,--no-as-needed", dir+name)
			for how, argv := range map[string][]string{
				"linked": {mallocPreload(t), linked}, "preloaded before": {mallocPreload(t, dir+name), plain},
				"preloaded behind": {mallocPreload(t) + ":" + dir + name, plain},
			} {
				if out, err := run(t, d, []string{argv[0], "URDMA_SHARE_MALLOC=16M"}, argv[1], "none"); err != nil {
					t.Errorf("%s: %v\n%s", how, err, out)
				}
			}
		})
	}
}

// TestMallocBesideTracer: a library that defines some allocator functions and calls the next ones works
// before and after ours.
func TestMallocBesideTracer(t *testing.T) {
	d, binary := startUrdmad(t), mallocProgram(t)
	tracer := programtest.Compile(t, filepath.Join(t.TempDir(), "tracer.so"), "-fno-builtin", "-shared", "-fPIC",
		"testdata/alone/tracer.c")
	for how, preload := range map[string]string{"before": mallocPreload(t, tracer),
		"behind": mallocPreload(t) + ":" + tracer} {
		if out, err := run(t, d, []string{preload, "URDMA_SHARE_MALLOC=16M"}, binary, "none"); err != nil {
			t.Errorf("%s: %v\n%s", how, err, out)
		}
	}
}

// TestMallocBesideSanitizer: the same for AddressSanitizer, whose runtime is linked.
func TestMallocBesideSanitizer(t *testing.T) {
	d, binary := startUrdmad(t), mallocProgram(t, "-fsanitize=address", "-g")
	env := []string{mallocPreload(t), "URDMA_SHARE_MALLOC=16M", "ASAN_OPTIONS=verify_asan_link_order=0"}
	if out, err := run(t, d, env, "setarch", "-R", binary, "none"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestMallocForkHandlers: fork handlers of a library initialised before liburdma.so find the memory in the
// child, too.
func TestMallocForkHandlers(t *testing.T) {
	dir := t.TempDir()
	lib := programtest.Compile(t, filepath.Join(dir, "libhandlers.so"), "-DLIBRARY", "-shared", "-fPIC", "testdata/alone/handlers.c")
	binary := programtest.Compile(t, filepath.Join(dir, "handlers"), "testdata/alone/handlers.c", "-Wl,-rpath,"+dir, lib)
	if out, err := run(t, startUrdmad(t), []string{mallocPreload(t)}, binary); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
