package fresh

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// skipped is the exit status of a script that can't run here.
const skipped = 77

// TestDemoIsTheFirstCommand: on each Debian that README names.
func TestDemoIsTheFirstCommand(t *testing.T) {
	for _, suite := range []string{"bookworm", "trixie"} {
		t.Run(suite, func(t *testing.T) { inFresh(t, "./demo.sh", suite) })
	}
}

// TestMPI: test/mpi has everything that it needs after .ci/deps has run.
func TestMPI(t *testing.T) { inFresh(t, "./mpi.sh", "bookworm") }

// inFresh runs a script that installs a fresh Debian, in long runs only.
func inFresh(t *testing.T, script ...string) {
	if os.Getenv("URDMA_LONG") == "" {
		t.Skip("SKIPPED: a fresh Debian takes minutes: URDMA_LONG=1 runs it")
	}
	out, err := exec.Command(script[0], script[1:]...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == skipped {
		_, reason, _ := strings.Cut(string(out), "SKIP: ")
		t.Skip("SKIPPED: ", reason)
	}
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// TestMounts: in a plain chroot make test prints which mounts are needed, instead of failing tests.
func TestMounts(t *testing.T) {
	root := t.TempDir()
	lacks := func(want ...string) {
		t.Helper()
		out, err := exec.Command("../../.ci/mounts", root).Output()
		lines := strings.Fields(strings.ReplaceAll(string(out), " ", "\x00"))
		if err == nil || len(lines) != len(want) {
			t.Fatalf("%q, %v, expected %d commands", out, err, len(want))
		}
		for i, line := range lines {
			if line = strings.ReplaceAll(line, "\x00", " "); !strings.HasSuffix(line, root+want[i]) {
				t.Errorf("%q, expected a mount of %s", line, want[i])
			}
		}
	}
	lacks("/proc", "/sys", "/dev/shm", "/dev/pts")
	for _, dir := range []string{"proc/self", "sys/class/net"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "proc/self/stat"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	lacks("/dev/shm", "/dev/pts")
}

// machine makes a directory with commands that simulate a machine for .ci/deps.
func machine(t *testing.T, commands map[string]string) (path string) {
	t.Helper()
	path = t.TempDir()
	for name, script := range commands {
		script = "#!/bin/sh\n" + script + "\n"
		if err := os.WriteFile(filepath.Join(path, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"sh", "dirname", "env"} {
		at, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at, filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestDepsSpeaksToThePackageManager: without root it prints a single command, for the machine's package manager, and
// names no installed package.
func TestDepsSpeaksToThePackageManager(t *testing.T) {
	user := "echo 1000"
	for _, c := range []struct {
		name     string
		commands map[string]string
		want     string
	}{
		{"Debian", map[string]string{
			"id": user, "apt-get": "exit 9",
			"dpkg-query": `case "$*" in *gcc*) printf 'ii ' ;; esac`,
		}, "sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends " +
			"libc6-dev make pkg-config libdpdk-dev libibverbs-dev librdmacm-dev ca-certificates golang-go'"},
		{"Fedora", map[string]string{
			"id": user, "dnf": "exit 9",
			"rpm": `case "$*" in *gcc*) exit 0 ;; esac; exit 1`,
		}, "sudo sh -c 'dnf makecache && dnf install -y --setopt=install_weak_deps=False " +
			"glibc-devel make pkgconf-pkg-config dpdk-devel rdma-core-devel ca-certificates golang'"},
		{"neither", map[string]string{"id": user}, "neither apt-get nor dnf"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("../../.ci/deps", "build")
			cmd.Env = []string{"PATH=" + machine(t, c.commands)}
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.want) {
				t.Errorf("ends with %v and says\n%s\nwant: %s", err, out, c.want)
			}
		})
	}
}
