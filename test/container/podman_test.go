package container

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPodman builds the images with podman and runs docs/container.md.
func TestPodman(t *testing.T) {
	if os.Getenv("URDMA_LONG") == "" {
		t.Skip("SKIPPED: a fresh Debian and two images take minutes: URDMA_LONG=1 or make test-container runs it")
	}
	out, err := exec.Command("./podman.sh").CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 77 {
		_, reason, _ := strings.Cut(string(out), "SKIP: ")
		t.Skip("SKIPPED: ", reason)
	}
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 reads, 3 answered", "the data was compared", "ping data: rdma-ping-9", "== done"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q", want)
		}
	}
}

// TestManifests holds the files for others' tools against those tools' schemas,
// and sees that a wrong name in each would be found.
func TestManifests(t *testing.T) {
	check := filepath.Join(t.TempDir(), "manifests")
	build := exec.Command("../../../.ci/go", "build", "-o", check, ".")
	build.Dir = "manifests"
	if out, err := build.CombinedOutput(); err != nil {
		if strings.Contains(string(out), "dial tcp") || strings.Contains(string(out), "lookup") || strings.Contains(string(out), "GOPROXY") {
			t.Skipf("SKIPPED: the schemas' modules can't be fetched: %s", out)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	for file, right := range map[string]string{
		"../../packaging/kubernetes/daemonset.yaml": "hostPath",
		"../../packaging/kubernetes/sidecar.yaml":   "startupProbe",
		"../../packaging/container/compose.yaml":    "cap_drop",
		"../../examples/ci/github-actions.yml":      "runs-on",
	} {
		if out, err := exec.Command(check, file).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		wrong := filepath.Join(t.TempDir(), filepath.Base(file))
		if err := os.WriteFile(wrong, []byte(strings.ReplaceAll(string(text), right+":", right+"s:")), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(check, wrong).CombinedOutput(); err == nil || !strings.Contains(string(out), right) {
			t.Errorf("%s with %q for %q: %v\n%s", file, right+"s", right, err, out)
		}
	}
}
