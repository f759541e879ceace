package recipes

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// steps are the commands of an example for continuous integration, but for those
// that fetch and build: the checkout that this is stands for what they make.
func steps(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	if strings.Contains(file, "github") {
		for _, name := range []string{"start urdmad", "test"} {
			m := regexp.MustCompile(`(?s)- name: ` + name + `\n        run: \|\n(.*?)(?:\n      - |\z)`).FindStringSubmatch(string(text))
			if m == nil {
				t.Fatalf("%s has no step %q", file, name)
			}
			lines = append(lines, strings.Split(m[1], "\n")...)
		}
	} else {
		_, script, _ := strings.Cut(string(text), "\n  script:\n")
		script, _, _ = strings.Cut(script, "\n  artifacts:")
		for _, line := range strings.Split(script, "\n") {
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "- "))
		}
	}
	return strings.Join(append(lines, "kill %1"), "\n")
}

// TestExamplesOfContinuousIntegration runs the steps of the example jobs.
func TestExamplesOfContinuousIntegration(t *testing.T) {
	dir := top(t)
	need(t, []string{"rping", "ibv_devinfo"})
	for _, name := range []string{"github-actions.yml", "gitlab-ci.yml"} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			if err := os.Symlink(dir, filepath.Join(home, "urdma")); err != nil {
				t.Fatal(err)
			}
			sockets, err := os.MkdirTemp("", "urdma-ci") // a short path
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(sockets) })
			out := typed(t, home, []string{"XDG_RUNTIME_DIR=" + sockets, "URDMA_SOCKET="}, steps(t, "../../examples/ci/"+name))
			for _, want := range []string{"PORT_ACTIVE", "ping data: rdma-ping-9"} {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}
