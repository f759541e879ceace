package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func must(t *testing.T, dir string, argv ...string) string {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out[max(0, len(out)-3000):])
	}
	return string(out)
}

// made is build/release of a clone in dir.
func made(t *testing.T, dir string) (release, sums string) {
	t.Helper()
	must(t, "../..", "git", "-c", "safe.directory=*", "clone", "-q", "--no-hardlinks", ".", dir)
	must(t, dir, "make", "release")
	release = filepath.Join(dir, "build", "release")
	text, err := os.ReadFile(filepath.Join(release, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return release, string(text)
}

// TestSameBytes makes a release twice, in directories of different names and lengths.
func TestSameBytes(t *testing.T) {
	if os.Getenv("URDMA_LONG") == "" {
		t.Skip("SKIPPED: builds a release twice; a long test (URDMA_LONG=1)")
	}
	for _, program := range []string{"git", "dpkg-deb", "xz", "lintian"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIPPED: %v; .ci/deps long", err)
		}
	}
	first, sums := made(t, filepath.Join(t.TempDir(), "a"))
	_, again := made(t, filepath.Join(t.TempDir(), "another", "place"))
	if sums != again {
		t.Errorf("made twice, a release differs:\n%s\n%s", sums, again)
	}
	for _, kind := range []string{".tar.xz", ".deb", ".sbom.json"} {
		if !strings.Contains(sums, kind+"\n") {
			t.Errorf("no %s in\n%s", kind, sums)
		}
	}
	must(t, first, "sha256sum", "-c", "SHA256SUMS")
	debs, err := filepath.Glob(filepath.Join(first, "*.deb"))
	if err != nil || len(debs) != 1 {
		t.Fatalf("packages: %v, %v", debs, err)
	}
	t.Log(must(t, first, "lintian", "--allow-root", "--fail-on", "error", debs[0]))
}
