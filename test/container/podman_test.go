package container

import (
	"encoding/json"
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
	for _, want := range []string{"3 reads, 3 answered, 0 lost", "ping data: rdma-ping-9", "urdma-kubelet version", "== done"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q", want)
		}
	}
}

// TestManifests checks the files for other tools against those tools' schemas, and checks that a wrong name in each
// would be found.
func TestManifests(t *testing.T) {
	check := buildCheck(t)
	for file, wrongs := range manifests {
		if out, err := exec.Command(check, file).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range wrongs {
			mustRefuse(t, check, file, string(text), w)
		}
	}
}

// apiServer is the version of Kubernetes whose OpenAPI schemas the manifests must fit. Its module is only read.
const apiServer = "k8s.io/kubernetes@v1.37.2"

// buildCheck builds the command manifests, and returns its path.
func buildCheck(t *testing.T) string {
	t.Helper()
	check := filepath.Join(t.TempDir(), "manifests")
	goInManifests(t, "build", "-o", check, ".")
	var module struct{ Dir string }
	if err := json.Unmarshal(goInManifests(t, "mod", "download", "-json", apiServer), &module); err != nil {
		t.Fatal(err)
	}
	t.Setenv("URDMA_OPENAPI", filepath.Join(module.Dir, "api/openapi-spec/v3"))
	return check
}

// goInManifests runs go in the module manifests, and returns its output.
func goInManifests(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("../../../.ci/go", args...)
	cmd.Dir = "manifests"
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		said.Write(out)
		if strings.Contains(said.String(), "dial tcp") || strings.Contains(said.String(), "lookup") ||
			strings.Contains(said.String(), "GOPROXY") {
			t.Skipf("SKIPPED: the schemas' modules can't be fetched: %s", said.String())
		}
		t.Fatalf("%v\n%s", err, said.String())
	}
	return out
}

// wrong is a mistake in a manifest, and part of the expected error.
type wrong struct{ right, wrong, said string }

// manifests are the files, each with mistakes that the check must find: a misspelt name, a value of another type, a field
// that is missing.
var manifests = map[string][]wrong{
	"../../packaging/kubernetes/daemonset.yaml": {{"hostPath:", "hostPaths:", "hostPaths"},
		{"kind: DaemonSet", "kind: DeamonSet", "DeamonSet"}, {"runAsUser: 4001", "runAsUser: soon", "runAsUser"}},
	"../../packaging/kubernetes/sidecar.yaml": {{"startupProbe:", "startupProbes:", "startupProbes"},
		{"runAsUser: 4002", "runAsUser: soon", "runAsUser"}},
	"../../packaging/kubernetes/server.yaml": {{"resources:", "resource:", "resource"},
		{"runAsUser: 65532", "runAsUser: soon", "runAsUser"}},
	"../../packaging/kubernetes/client.yaml": {{"command:", "commands:", "commands"}, {"kind: Pod", "kind: Pods", "Pods"},
		{"- name: program", "- workingDir: /", "missing property 'name'"}},
	"../../packaging/kubernetes/claim.yaml": {{"exactly:", "exact:", "exact"},
		{"resourceClaims:", "resourceClaim:", "resourceClaim"}},
	"../../packaging/container/compose.yaml": {{"cap_drop:", "cap_drops:", "cap_drops"},
		{"services:", "service:", "service"}},
	"../../examples/ci/github-actions.yml": {{"runs-on:", "runs-ons:", "runs-on"}, {"timeout-minutes: 30",
		"timeout-minutes: soon", "float number"}},
	"../../.github/workflows/github-release.yml": {{"steps:", "step:", "step"}, {"secrets.", "secret.", "secret"}},
	"../../examples/ci/gitlab-ci.yml": {{"before_script:", "before_scripts:", "before_scripts"},
		{"timeout: 30 minutes", "timeout: 30", "timeout"}, {"- urdma run -- ibv_devinfo", "- echo: yes", "script"}},
}

// mustRefuse writes the text with a mistake and checks that the error names it.
func mustRefuse(t *testing.T, check, file, text string, w wrong) {
	t.Helper()
	if !strings.Contains(text, w.right) {
		t.Errorf("%s has no %q", file, w.right)
	}
	path := filepath.Join(t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, w.right, w.wrong)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(check, path).CombinedOutput(); err == nil || !strings.Contains(string(out), w.said) {
		t.Errorf("%s with %q for %q: %v\n%s", file, w.wrong, w.right, err, out)
	}
}
