package kubelettest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"urdma/test/lab"
)

// container is what a pod says of a container, with the answer of the device plugin. It has no capability but caps,
// can't gain any, and can't write its root.
type container struct {
	name     string // "": a number
	args     []string
	uid, gid uint32
	network  string // file of the network namespace; "": one of its own, without interfaces
	volumes  []string
	caps     []string
	devices  []string // names of CDI devices
	cdi      string   // directory of CDI specifications
}

// engine runs containers by crun, all on one root without a shell: programs and their libraries.
type engine struct {
	t       *testing.T
	l       *lab.Lab
	root    string
	numbers atomic.Int64
}

func newEngine(t *testing.T, l *lab.Lab, programs ...string) *engine {
	t.Helper()
	e := &engine{t: t, l: l, root: filepath.Join(l.Dir, "root")}
	for _, p := range programs {
		path, err := exec.LookPath(p)
		if err != nil {
			t.Skipf("SKIPPED: needs %s: %v", p, err)
		}
		e.copy(path, "/bin/"+filepath.Base(path))
		e.libraries(path)
	}
	e.libraries(l.Program("liburdma.so")) // libc
	// glibc loads libgcc_s when a thread of rping ends. The pattern is well-formed.
	libgcc, _ := filepath.Glob("/lib/*-linux-gnu/libgcc_s.so.1")
	for _, path := range libgcc {
		e.copy(path, path)
	}
	return e
}

// libraries copies the libraries that a program or a library needs.
func (e *engine) libraries(path string) {
	e.t.Helper()
	list, _ := exec.Command("ldd", path).Output() // fails for a static program
	for line := range strings.Lines(string(list)) {
		for _, word := range strings.Fields(line) {
			if strings.HasPrefix(word, "/") {
				e.copy(word, word)
			}
		}
	}
}

func (e *engine) copy(from, to string) {
	e.t.Helper()
	to = filepath.Join(e.root, to)
	if _, err := os.Stat(to); err == nil {
		return
	}
	in, err := os.Open(from)
	if err != nil {
		e.t.Fatal(err)
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		e.t.Fatal(err)
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		e.t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		e.t.Fatal(err)
	}
}

// start starts a container. Its processes end with the lab.
func (e *engine) start(c container) *lab.Process {
	e.t.Helper()
	return start(e.t, e.l, e.command(c)...)
}

// command prepares a container, and returns the command line that starts it.
func (e *engine) command(c container) []string {
	e.t.Helper()
	name := c.name
	if name == "" {
		name = fmt.Sprint("container-", e.numbers.Add(1))
	}
	spec := c.spec(e.root)
	spec.Hostname = name
	if len(c.devices) > 0 {
		cache, err := cdi.NewCache(cdi.WithSpecDirs(c.cdi), cdi.WithAutoRefresh(false))
		if err != nil {
			e.t.Fatal(err)
		}
		if missing, err := cache.InjectDevices(spec, c.devices...); err != nil {
			e.t.Fatalf("%v: %v; %v", missing, err, cache.GetErrors())
		}
	}
	text, err := json.Marshal(spec)
	if err != nil {
		e.t.Fatal(err)
	}
	bundle := filepath.Join(e.l.Dir, name)
	if err := os.Mkdir(bundle, 0o755); err != nil {
		e.t.Fatal(err)
	}
	write(e.t, filepath.Join(bundle, "config.json"), string(text))
	e.t.Cleanup(func() {
		remove := e.crun("delete", "--force", name)
		_ = exec.Command(remove[0], remove[1:]...).Run() // mostly gone
	})
	return e.crun("run", "--bundle", bundle, name)
}

// exec runs a program in a container, as kubectl exec does.
func (e *engine) exec(user, name string, args ...string) (string, error) {
	argv := e.crun(append([]string{"exec", "--user", user, name}, args...)...)
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	return string(out), err
}

// crun is the command line of crun, which knows only cgroups of version 2. A machine with both versions gets that in a
// mount namespace.
func (e *engine) crun(args ...string) []string {
	const cgroups = "mount -t tmpfs none /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec \"$@\""
	crun := append([]string{"crun", "--root", filepath.Join(e.l.Dir, "crun"), "--cgroup-manager=disabled"}, args...)
	var fs unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &fs); err == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
		return crun
	}
	return append([]string{"unshare", "--mount", "--propagation", "private", "sh", "-c", cgroups, "sh"}, crun...)
}

func (c *container) spec(root string) *oci.Spec {
	caps := &oci.LinuxCapabilities{Bounding: c.caps, Effective: c.caps, Permitted: c.caps}
	s := &oci.Spec{
		Version: "1.0.2",
		Root:    &oci.Root{Path: root, Readonly: true},
		Process: &oci.Process{Args: c.args, Cwd: "/", Env: []string{"PATH=/bin"}, NoNewPrivileges: true, Capabilities: caps,
			User: oci.User{UID: c.uid, GID: c.gid}},
		Mounts: []oci.Mount{{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/sys", Type: "bind", Source: "/sys", Options: []string{"rbind", "ro"}},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "mode=755"}},
			{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "nodev", "mode=1777"}}},
		Linux: &oci.Linux{Namespaces: []oci.LinuxNamespace{{Type: oci.PIDNamespace}, {Type: oci.MountNamespace},
			{Type: oci.IPCNamespace}, {Type: oci.UTSNamespace}, {Type: oci.NetworkNamespace, Path: c.network}}},
	}
	for _, v := range c.volumes {
		s.Mounts = append(s.Mounts, oci.Mount{Destination: v, Source: v, Type: "bind", Options: []string{"rbind", "rw"}})
	}
	return s
}
