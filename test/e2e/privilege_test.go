package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// vdevRow is a line of the table in docs/ports.md.
type vdevRow struct {
	vdev         string
	capabilities []string
}

var (
	capability = regexp.MustCompile(`CAP_[A-Z_]+`)
	optional   = regexp.MustCompile(`\[[^]]*\]`)
)

// vdevTable reads the table in docs/ports.md, except "any DPDK device", which names nothing to test.
func vdevTable(t *testing.T) (rows []vdevRow) {
	t.Helper()
	text, err := os.ReadFile("../../docs/ports.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| `vdev` | what it joins | needs |\n|---|---|---|\n")
	if !found {
		t.Fatal("docs/ports.md has no table of vdevs")
	}
	for _, line := range strings.Split(table, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 3 {
			break
		}
		if name, ok := strings.CutPrefix(cells[0], "`"); ok {
			name, _, _ = strings.Cut(name, "`")
			name = optional.ReplaceAllString(name, "")
			rows = append(rows, vdevRow{name, capability.FindAllString(cells[2], -1)})
		}
	}
	return rows
}

// asUser returns a command line of an ordinary user with only the given capabilities and no more locked memory than
// most systems allow.
func asUser(capabilities []string, argv ...string) []string {
	set := "-all"
	for _, c := range capabilities {
		set += ",+" + strings.ToLower(strings.TrimPrefix(c, "CAP_"))
	}
	return append([]string{"prlimit", "--memlock=8388608", "setpriv", "--reuid", "65534", "--regid", "65534",
		"--clear-groups",
		"--inh-caps", set, "--ambient-caps", set, "--bounding-set", set, "--"}, argv...)
}

// TestCapabilitiesOfTheTable: each row of the table in docs/ports.md works with exactly the capabilities that it
// names, and fails without any one of them.
func TestCapabilitiesOfTheTable(t *testing.T) {
	l := labtest.New(t)
	if os.Getuid() != 0 {
		t.Skip("capabilities can be given only by root")
	}
	for _, program := range []string{"setpriv", "prlimit", "ping"} {
		need(t, program)
	}
	rows := vdevTable(t)
	if len(rows) < 5 {
		t.Fatalf("docs/ports.md's table has only %v", rows)
	}
	for _, row := range rows {
		t.Run(row.vdev, func(t *testing.T) {
			m := newPrivilegeLab(t, l, row)
			if out, ready := m.start(row.capabilities, m.reach); !ready {
				t.Errorf("with %v it does not work:\n%s", row.capabilities, out)
			}
			for i, without := range row.capabilities {
				left := slices.Delete(slices.Clone(row.capabilities), i, i+1)
				if out, ready := m.start(left, nil); ready {
					t.Errorf("%s is not needed: with %v it works:\n%s", without, left, out)
				}
			}
		})
	}
}

// privilegeLab is a network namespace with an interface eth1, whose other end has an address, and a urdma.json.
type privilegeLab struct {
	t       *testing.T
	l       *lab.Lab
	ns, far *lab.Namespace
	dir     string
	vdev    string
}

func newPrivilegeLab(t *testing.T, l *lab.Lab, row vdevRow) *privilegeLab {
	t.Helper()
	m := &privilegeLab{t: t, l: l, dir: shortDir(t)}
	m.vdev = strings.NewReplacer("server\\|client", "server", "PATH", m.dir+"/wire.sock", "eth1",
		"veth0").Replace(row.vdev)
	address := "10.9.0.1/24"
	if m.vdev == "loopback" {
		address = "198.18.0.1/24"
	}
	var err error
	if m.ns, m.far, err = l.Veth(1500); err != nil {
		t.Fatal(err)
	}
	if err := m.far.Run("ip", "address", "add", "10.9.0.2/24", "dev", "veth0"); err != nil {
		t.Fatal(err)
	}
	if m.vdev == "udp" || m.vdev == "tcp" { // the kernel's own address is the port's
		if err := m.ns.Run("ip", "address", "add", address, "dev", "veth0"); err != nil {
			t.Fatal(err)
		}
	}
	text := `{ "ports": [ { "vdev": "` + m.vdev + `", "ipv4_address": "` + address + `" } ], "socket": "` + m.dir +
		`/urdmad.sock" }`
	if err := os.WriteFile(filepath.Join(m.dir, "urdma.json"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(m.dir, lab.OrdinaryUID, lab.OrdinaryUID); err != nil {
		t.Fatal(err)
	}
	return m
}

// start runs urdmad until it is ready and then calls check, or runs it until it ends.
func (m *privilegeLab) start(capabilities []string, check func() error) (out string, ready bool) {
	m.t.Helper()
	argv := m.ns.Command(asUser(capabilities, m.l.Program("urdmad"), "--config", m.dir+"/urdma.json")...)
	p, err := m.l.Start(lab.Options{Env: []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + m.dir, "XDG_RUNTIME_DIR=" +
		m.dir}}, argv...)
	if err != nil {
		m.t.Fatal(err)
	}
	defer p.Kill()
	for deadline := time.Now().Add(lab.Patience); p.Running() && !ready &&
		time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		ready = strings.Contains(p.Output(), "urdmad is ready")
	}
	if ready && check != nil {
		if err := check(); err != nil {
			return p.Output() + err.Error(), false
		}
	}
	return p.Output(), ready
}

// reach pings the port over its wire, if it has one and answers pings itself.
func (m *privilegeLab) reach() error {
	switch {
	case m.vdev == "loopback", m.vdev == "udp", m.vdev == "tcp", strings.HasPrefix(m.vdev, "memif"):
		return nil
	case strings.HasPrefix(m.vdev, "net_tap"):
		_, iface, _ := strings.Cut(m.vdev, "iface=")
		if err := m.ns.Run("ip", "address", "add", "10.9.0.2/24", "dev", iface); err != nil {
			return err
		}
		if err := m.ns.Run("ip", "link", "set", iface, "up"); err != nil {
			return err
		}
		return m.ns.Run("ping", "-c", "3", "-w", "30", "10.9.0.1")
	}
	return m.far.Run("ping", "-c", "3", "-w", "30", "10.9.0.1")
}

// TestUserNamespaceRecipe executes docs/user-namespace.md as an ordinary user.
func TestUserNamespaceRecipe(t *testing.T) {
	whole(t)
	l := labtest.New(t)
	need(t, "ping")
	need(t, "rping")
	text, err := os.ReadFile("../../docs/user-namespace.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 3 {
		t.Fatalf("the page has %d blocks of code, expected 3", len(blocks))
	}
	enter := strings.Fields(blocks[0][1])
	if err := os.Symlink(filepath.Dir(l.Program("urdmad")), filepath.Join(l.Dir, "build")); err != nil {
		t.Fatal(err)
	}
	user := lab.Options{UID: lab.OrdinaryUID, Dir: l.Dir,
		Env: []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=/tmp", "HOME=/tmp", "LC_ALL=C"}}
	if os.Getuid() != 0 {
		user.UID = 0
	}
	if out, err := exec.Command(enter[0], append(enter[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no user namespace here: %v: %s", err, out)
	}
	p, err := l.Start(user, append(enter, "bash", "-ec", "trap 'kill $(jobs -p); wait; rm -rf $lab' EXIT\n"+
		blocks[1][1]+blocks[2][1])...)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Wait(3 * lab.Patience)
	for _, want := range []string{"ping data: rdma-ping-9", ", 3 received"} {
		if err != nil || !strings.Contains(p.Output(), want) {
			t.Fatalf("%v; want %q in\n%s", err, want, p.Output())
		}
	}
}

// shortDir makes a temporary directory whose name is short enough for a vdev.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "urdma")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
