package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstallRefuses: where urdmad can't start, as on Alpine, the archive's script says why and installs nothing.
func TestInstallRefuses(t *testing.T) {
	dir := t.TempDir()
	archive, prefix := filepath.Join(dir, "archive"), filepath.Join(dir, "prefix")
	urdmad := filepath.Join(archive, "PREFIX", "sbin", "urdmad")
	must(t, "", "mkdir", "-p", filepath.Dir(urdmad))
	must(t, "", "cp", "../../packaging/tarball-install", filepath.Join(archive, "install"))
	source := filepath.Join(dir, "urdmad.c")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		loader string
		works  bool
	}{
		{"-Wl,--dynamic-linker=/absent/ld-linux.so.2", false},
		{"-O1", true},
	} {
		must(t, "", "gcc", c.loader, "-o", urdmad, source)
		out, err := exec.Command(filepath.Join(archive, "install"), prefix).CombinedOutput()
		_, absent := os.Stat(filepath.Join(prefix, "sbin", "urdmad"))
		if (err == nil) != c.works || (absent == nil) != c.works ||
			strings.Contains(string(out), "needs glibc 2.34 or newer") == c.works {
			t.Errorf("%s: %v, %v\n%s", c.loader, err, absent, out)
		}
	}
}
