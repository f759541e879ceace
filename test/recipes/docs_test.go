package recipes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocs makes the web site, which fails for a wrong link.
func TestDocs(t *testing.T) {
	need(t, []string{"mkdocs", "mandoc"})
	build := t.TempDir()
	if out, err := exec.Command("../../.ci/docs", build).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for page, want := range map[string]string{"index.html": "RDMA on any machine", "recipes.html": "ib_write_bw",
		"WIRE.html": "Terminate", "man/urdma.1.html": "urdma ping", "man/urdmad.8.html": "--responder"} {
		text, err := os.ReadFile(filepath.Join(build, "site", page))
		if plain := strings.NewReplacer("&#x2D;", "-", "\u2010", "-").Replace(string(text)); err != nil ||
			!strings.Contains(plain, want) {
			t.Errorf("%s has no %q: %v", page, want, err)
		}
	}
}
