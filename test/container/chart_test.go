package container

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const chart = "../../packaging/kubernetes/chart"

// TestChart renders the chart with its own values and with each file in its directory ci. Kubernetes' types decode
// the manifests, and urdma checks the urdma.json in them.
func TestChart(t *testing.T) {
	check := buildCheck(t)
	if out, err := exec.Command(check, chart).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(chart, "ci", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no values: %v", err)
	}
	for _, values := range append(files, "") {
		t.Run(filepath.Base(values), func(t *testing.T) { checkConfig(t, render(t, check, values)) })
	}
	t.Run("daemonset.yaml", func(t *testing.T) {
		text, err := os.ReadFile("../../packaging/kubernetes/daemonset.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if _, manifests, _ := strings.Cut(string(text), "\n"); manifests != render(t, check, "") {
			t.Error("daemonset.yaml differs after its first line from what the chart renders; in test/container/manifests: " +
				"go run . -render ../" + chart)
		}
	})
	for name, c := range map[string]struct{ values, said string }{
		"policy in the node's network": {"networkPolicy: true", "networkPolicy needs hostNetwork: false"},
		"unknown value":                {"wires: udp", "wires"},
		"unknown wire":                 {"wire: infiniband", "wire"},
		"too many workers":             {"workers: 9", "workers"},
		"a resource without a domain":  {"resourceNames: [ urdma ]", "resourceNames"},
		"ports in config":              {"config: { ports: [] }", "config"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, []byte(c.values+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(check, "-render", chart, file).CombinedOutput(); err == nil ||
				!strings.Contains(string(out), c.said) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	for _, w := range []wrong{{"volumeMounts:", "volumeMount:", "volumeMount"}, {"kind: DaemonSet", "kind: DaemonSets",
		"DaemonSets"}, {".Values.hostNetwork", ".Values.hostNetworks", "hostNetworks"}} {
		t.Run(w.wrong, func(t *testing.T) { mustRefuseChart(t, check, w) })
	}
}

func render(t *testing.T, check, values string) string {
	t.Helper()
	args := []string{"-render", chart}
	if values != "" {
		args = append(args, values)
	}
	out, err := exec.Command(check, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// checkConfig checks the urdma.json of the ConfigMap, which is the first manifest.
func checkConfig(t *testing.T, manifests string) {
	t.Helper()
	urdma := "../../build/urdma"
	if build := os.Getenv("URDMA_BUILD"); build != "" {
		urdma = filepath.Join(build, "urdma")
	}
	if _, err := os.Stat(urdma); err != nil {
		t.Skipf("SKIPPED: run make build first: %v", err)
	}
	_, text, found := strings.Cut(manifests, "  urdma.json: |\n")
	text, _, ends := strings.Cut(text, "\n---\n")
	if !found || !ends {
		t.Fatalf("no urdma.json:\n%s", manifests)
	}
	file := filepath.Join(t.TempDir(), "urdma.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(urdma, "config", "check", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, text)
	}
}

// mustRefuseChart makes a mistake in a copy of the chart's daemonset.yaml, and checks that the error names it.
func mustRefuseChart(t *testing.T, check string, w wrong) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "chart")
	if err := os.CopyFS(dir, os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "templates", "daemonset.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(text), w.right, w.wrong)
	if changed == string(text) {
		t.Fatalf("%s has no %q", file, w.right)
	}
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(check, dir).CombinedOutput(); err == nil || !strings.Contains(string(out), w.said) {
		t.Errorf("%v\n%s", err, out)
	}
}
