package recipes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// steps returns the commands of an example for continuous integration, except those that fetch, build and install:
// this checkout's build replaces the package.
func steps(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(file, "github") {
		_, script, found := strings.Cut(string(text), "- name: test\n        run: |\n")
		if !found {
			t.Fatalf("%s has no step \"test\"", file)
		}
		return script
	}
	var lines []string
	_, script, _ := strings.Cut(string(text), "\n  script:\n")
	for _, line := range strings.Split(script, "\n") {
		lines = append(lines, strings.Trim(strings.TrimPrefix(strings.TrimSpace(line), "- "), "'"))
	}
	return strings.Join(lines, "\n")
}

// TestExamplesOfContinuousIntegration runs the steps of the example jobs.
func TestExamplesOfContinuousIntegration(t *testing.T) {
	dir := top(t)
	need(t, []string{"rping", "ibv_devinfo"})
	for _, name := range []string{"github-actions.yml", "gitlab-ci.yml"} {
		t.Run(name, func(t *testing.T) {
			path := "PATH=" + filepath.Join(dir, "build") + ":" + os.Getenv("PATH")
			out := typed(t, t.TempDir(), []string{path}, steps(t, "../../examples/ci/"+name))
			for _, want := range []string{"PORT_ACTIVE", "ping data: rdma-ping-9"} {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}
