package release

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstalled is TestRelease's part of the same name, of a release that is there: URDMA_RELEASE is its folder.
func TestInstalled(t *testing.T) {
	release := os.Getenv("URDMA_RELEASE")
	if release == "" {
		t.Skip("SKIPPED: TestRelease runs it; here URDMA_RELEASE names a folder that make release made")
	}
	installed(t, release)
}

// installed has fresh Debians install a release from a web server, in every way that the documentation names, and run
// programs on it.
func installed(t *testing.T, release string) {
	job := filepath.Join(t.TempDir(), "job")
	build := exec.Command("../../.ci/go", "build", "-C", "../container/manifests", "-o", job, "./job")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // it is to run in any Debian
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files := http.FileServer(http.Dir(release))
	mux := http.NewServeMux()
	mux.Handle("/apt/", files)
	mux.Handle("/dnf/", files)
	mux.Handle("/OWNER/urdma/releases/download/v0.1.0/", http.StripPrefix("/OWNER/urdma/releases/download/v0.1.0", files))
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, suite := range []string{"bookworm", "trixie"} {
		t.Run(suite, func(t *testing.T) {
			out, err := exec.Command("./fresh.sh", suite, server.URL, job).CombinedOutput()
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.ExitCode() == 77 {
				_, reason, _ := strings.Cut(string(out), "SKIP: ")
				t.Skip("SKIPPED: ", reason)
			}
			t.Logf("%s", out)
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
