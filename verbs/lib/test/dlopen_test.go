package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"urdma/test/programtest"
)

// names is the folder with links to the library under the names of the libraries it replaces, as make install
// creates it.
func names(t *testing.T) string {
	t.Helper()
	if out, err := exec.Command("make", "-s", "-C", root, "-f", "verbs/lib/lib.mk",
		"build/liburdma.d").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(filepath.Dir(preload(t)), "liburdma.d")
}

// libraryFiles are the names that programs use for the two libraries.
var libraryFiles = []string{"libibverbs.so.1", "libibverbs.so", "librdmacm.so.1", "librdmacm.so",
	"/nowhere/libibverbs.so.1",
	"/usr/lib/x86_64-linux-gnu/libibverbs.so.1", "../lib64/librdmacm.so.1", "libibverbs.so.1.14.44.0"}

// TestDlopen: a program that loads either library by name gets this library, with the preload, with the
// folder of names, and with both.
func TestDlopen(t *testing.T) {
	d := startUrdmad(t)
	binary := programtest.Compile(t, filepath.Join(t.TempDir(), "dlopen"), "testdata/alone/dlopen.c", "-ldl")
	preloaded, named := []string{}, []string{"LD_PRELOAD=", "LD_LIBRARY_PATH=" + names(t)}
	for _, c := range []struct {
		env   []string
		files []string
	}{
		{preloaded, libraryFiles},
		{named, libraryFiles[:4]},
		{named[1:], libraryFiles},
	} {
		args := []string{binary}
		for _, f := range c.files {
			args = append(args, "verbs", f)
		}
		out, err := run(t, d, c.env, args...)
		if err != nil {
			t.Errorf("%v: %v", c.env, err)
		}
		for _, f := range c.files {
			if !strings.Contains("\n"+out, "\n"+f+": 1 devices\n") {
				t.Errorf("%v: %s is not this library:\n%s", c.env, f, out)
			}
		}
	}
}

// TestDlopenKeepsTheCallersPath: RPATH and RUNPATH of the caller of dlopen apply to a name without a slash,
// whether the caller is the program or a library.
func TestDlopenKeepsTheCallersPath(t *testing.T) {
	d := startUrdmad(t)
	for _, tags := range []string{"-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "plugins"), 0o755); err != nil {
			t.Fatal(err)
		}
		binary := programtest.Compile(t, filepath.Join(dir, "dlopen"), "testdata/alone/dlopen.c", "-ldl", "-Wl,-rpath,$ORIGIN/plugins",
			tags)
		source := filepath.Join(dir, "plain.c")
		if err := os.WriteFile(source, []byte("int plain(void);\nint plain(void) { return 7; }\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		programtest.Compile(t, filepath.Join(dir, "plugins", "libibverbs_plugin.so"), "-shared", "-fPIC", source)
		out, err := run(t, d, nil, binary, "plain", "libibverbs_plugin.so", "plain", "libnone.so", "verbs", "libibverbs.so.1")
		want := "libibverbs_plugin.so: plain 7\nlibnone.so: libnone.so: cannot open shared object file: No such file or " +
			"directory\nlibibverbs.so.1: 1 devices\n"
		if err != nil || !strings.Contains(out, want) { // the library may say more
			t.Errorf("%s: %v\n%s", tags, err, out)
		}
	}
}

// TestSanitizedProgramLoadsUs: AddressSanitizer's runtime refuses a preload in front of it, unless told not
// to check.
func TestSanitizedProgramLoadsUs(t *testing.T) {
	d := startUrdmad(t)
	binary := programtest.Compile(t, filepath.Join(t.TempDir(), "dlopen"), "-fsanitize=address", "testdata/alone/dlopen.c", "-ldl")
	for _, env := range [][]string{
		{"ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0"},
		{"ASAN_OPTIONS=detect_leaks=0", "LD_PRELOAD=", "LD_LIBRARY_PATH=" + names(t)},
	} {
		if out, err := run(t, d, env, "setarch", "-R", binary, "verbs", "libibverbs.so.1"); err != nil ||
			!strings.Contains(out, "libibverbs.so.1: 1 devices\n") {
			t.Errorf("%v: %v\n%s", env, err, out)
		}
	}
}

// TestDriversLoadUnderTheNames: libraries of rdma-core's drivers, with which programs may be linked, find
// every symbol of libibverbs that they need, with immediate binding.
func TestDriversLoadUnderTheNames(t *testing.T) {
	d := startUrdmad(t)
	binary := programtest.Compile(t, filepath.Join(t.TempDir(), "dlopen"), "testdata/alone/dlopen.c", "-ldl")
	found := 0
	for _, driver := range []string{"libmlx5.so.1", "libmlx4.so.1", "libefa.so.1", "libmana.so.1"} {
		out, err := run(t, d, []string{"LD_PRELOAD=", "LD_BIND_NOW=1", "LD_LIBRARY_PATH=" + names(t)}, binary, "plain",
			driver)
		if strings.Contains(out, driver+": cannot open shared object file") {
			continue
		}
		found++
		if err != nil || out != fmt.Sprintf("%s: plain -1\n", driver) {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if found == 0 {
		t.Skip("no driver library of rdma-core is installed (ibverbs-providers)")
	}
}
