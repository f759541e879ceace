package test

import (
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exports lists a library's defined dynamic symbols as name@VERSION.
func exports(t *testing.T, path string) []string {
	t.Helper()
	out, err := exec.Command("nm", "-D", "--defined-only", "--with-symbol-versions", path).CombinedOutput()
	if err != nil {
		t.Fatalf("nm %s: %v\n%s", path, err, out)
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 && strings.Contains(f[2], "@") {
			names = append(names, strings.Replace(f[2], "@@", "@", 1))
		}
	}
	return names
}

// installed returns the path at which the dynamic linker finds a library.
func installed(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("/sbin/ldconfig", "-p").Output()
	if err != nil {
		t.Skipf("ldconfig -p: %v", err)
	}
	m := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(name) + ` .*=> (\S+)$`).FindSubmatch(out)
	if m == nil {
		t.Skipf("%s is not installed, nothing to compare with", name)
	}
	return string(m[1])
}

// TestEveryPublicFunctionIsOurs: a missing function would be called in the real library with objects of ours.
// Symbols private to rdma-core are excluded.
func TestEveryPublicFunctionIsOurs(t *testing.T) {
	ours := exports(t, preload(t))
	for _, library := range []string{"libibverbs.so.1", "librdmacm.so.1"} {
		for _, name := range exports(t, installed(t, library)) {
			if !strings.Contains(name, "@IBVERBS_PRIVATE_") && !slices.Contains(ours, name) {
				t.Errorf("%s of %s is missing", name, library)
			}
		}
	}
}

// TestNothingElseIsExported: the library exports only verbs, rdma_cm, rsockets, symbols for drivers,
// urdma_mark, urdma_inject, urdma_alloc and related functions, and the calls that pages/ and interpose/ define.
func TestNothingElseIsExported(t *testing.T) {
	out, err := exec.Command("nm", "-D", "--defined-only", "--with-symbol-versions", preload(t)).Output()
	if err != nil {
		t.Fatal(err)
	}
	allowed := regexp.MustCompile(`^(_?ibv_\w+|rdma_\w+|r[a-z]+|mult_to_ibv_rate|mbps_to_ibv_rate|` +
		`madvise|pthread_attr_setstack|` +
		`clone|_Fork|fork|vfork|ioctl|urdma_mark|urdma_inject|urdma_alloc|urdma_free|urdma_malloc(_\w+)?|` +
		`dlopen|(f?open|openat|scandir|(__)?[fl]?x?stat(at)?|__fxstatat)(64)?|__open(at)?(64)?_2|statx|` +
		`opendir|chdir|faccessat|e?(uid)?access|readlink(at)?|__readlink(at)?_chk|` +
		`(__)?realpath(_chk)?|canonicalize_file_name|l?(get|list)xattr|(get|free)ifaddrs|` +
		`connect|socket|bind|getsockname|setsockopt|` +
		`\w+@@IBVERBS_PRIVATE_\d+|IBVERBS_\S+|RDMACM_\S+)(@.*)?$`)
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); !allowed.MatchString(f[len(f)-1]) {
			t.Errorf("exported: %s", f[len(f)-1])
		}
	}
}

// TestNeedsOnlyLibc: small images have no other library, such as libgcc_s.
func TestNeedsOnlyLibc(t *testing.T) {
	f, err := elf.Open(preload(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil || len(needed) == 0 {
		t.Errorf("needs %v, %v", needed, err)
	}
	for _, library := range needed {
		if library != "libc.so.6" && !strings.HasPrefix(library, "ld-linux-") {
			t.Errorf("needs %s", library)
		}
	}
}

// TestDebianBinariesBindToUs starts Debian's own programs with immediate binding, and reads the dynamic
// linker's report of each symbol's definition.
func TestDebianBinariesBindToUs(t *testing.T) {
	var binaries []string
	for _, pattern := range []string{"/usr/bin/ib_*", "/usr/bin/ibv_*", "/usr/bin/rping", "/usr/bin/ucmatose",
		"/usr/bin/udaddy",
		"/usr/bin/rstream", "/usr/bin/riostream", "/usr/bin/rdma_*", "/usr/bin/udpong", "/usr/bin/mckey", "/usr/bin/cmtime"} {
		found, _ := filepath.Glob(pattern)
		binaries = append(binaries, found...)
	}
	if len(binaries) == 0 {
		t.Skip("no RDMA program of Debian is installed (ibverbs-utils, rdmacm-utils, perftest)")
	}
	d := startUrdmad(t)
	for _, binary := range binaries {
		t.Run(filepath.Base(binary), func(t *testing.T) {
			out, _ := run(t, d, []string{"LD_BIND_NOW=1", "LD_DEBUG=bindings"}, binary, "--help")
			if n, err := checkBindings(binary, out); err != nil {
				t.Error(err)
			} else if n == 0 {
				t.Logf("%s binds no verbs", binary)
			}
		})
	}
}

var bindingLine = regexp.MustCompile(`binding file (\S+) \[\d+\] to (\S+) \[\d+\]: ` +
	`normal symbol .(\w+)' \[(\w+\.?\d*)\]`)

// checkBindings counts the verbs bound to liburdma.so and names the first that isn't, except private symbols
// of rdma-core.
func checkBindings(binary, out string) (n int, err error) {
	for _, m := range bindingLine.FindAllStringSubmatch(out, -1) {
		public := strings.HasPrefix(m[4], "IBVERBS_1") || strings.HasPrefix(m[4], "RDMACM_")
		if !public {
			continue
		}
		if !strings.HasSuffix(m[2], "/liburdma.so") {
			return n, fmt.Errorf("%s: %s binds %s [%s] to %s", binary, m[1], m[3], m[4], m[2])
		}
		n++
	}
	return n, nil
}
