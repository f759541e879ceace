package recipes

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// recipe is a section of a page of recipes: its requirements, the place where the server of each block listens (a
// program with an rdma_cm id, a TCP port, or nothing), and the block's output.
type recipe struct {
	programs []string
	listens  []string
	prints   []string
}

var recipes = map[string]recipe{
	"perftest": {[]string{"ib_write_bw"}, []string{"ib_write_bw", "18515"},
		[]string{"MsgRate", "t_typical"}},
	"rping": {[]string{"rping"}, []string{"rping"}, []string{"ping data: rdma-ping-9"}},
	"fio":   {[]string{"fio"}, []string{"fio"}, []string{"WRITE: bw="}},
	"qperf": {[]string{"qperf"}, []string{"19765"}, []string{"latency"}},
	"libfabric": {[]string{"fi_pingpong"}, []string{"47592", "47592"},
		[]string{"usec/xfer", "usec/xfer"}},
	"Open MPI": {[]string{"mpirun", "mpicc"}, []string{""}, []string{"the sum is 3"}},
	"Python": {[]string{"/usr/lib/python3/dist-packages/pyverbs/device.cpython-*.so"}, []string{""},
		[]string{"urdma0 active hello"}},
	"Go":       {nil, []string{"ping", ""}, []string{"OK: all data was right", "-listen"}},
	"valgrind": {[]string{"valgrind", "rping"}, []string{"rping"}, []string{"ping data: rdma-ping-2"}},
	"Sanitizers": {[]string{"gcc", "/usr/lib/gcc/*/*/libtsan.so"}, []string{""},
		[]string{"1 MiB is registered"}},
	"gdb":                      {[]string{"gdb", "rping"}, []string{"rping"}, []string{"rdma_connect"}},
	"Three hosts for teaching": {[]string{"rping", "ip"}, []string{"rping"}, []string{"3 reads, 3 answered"}},
}

// sleep replaces sleep(1): instead of the whole seconds that the page gives a server, it waits until the server
// listens, because a busy machine may take longer. In the lab with three hosts the server is on the first.
const sleep = `#!/bin/sh
case $1 in
1 | 2) ;;
*) exec /bin/sleep "$@" ;;
esac
on=
[ -z "${lab:-}" ] || on='on 1'
case $LISTENS in
'') echo "nothing says who listens" ; exit 1 ;;
[0-9]*) listens() { grep -q "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$LISTENS") [0-9A-F]*:0000 0A " /proc/net/tcp /proc/net/tcp6; } ;;
*) listens() { $on "$URDMA" show listener | grep -q "$LISTENS"; } ;;
esac
until listens; do /bin/sleep 0.1; done
`

var block = regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```$")

// sections returns the recipes and their blocks.
func sections(t *testing.T, page string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		for _, m := range block.FindAllStringSubmatch(body, -1) {
			all[name] = append(all[name], m[1])
		}
	}
	return all
}

// top is the top of the checkout.
func top(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if build := os.Getenv("URDMA_BUILD"); build != filepath.Join(dir, "build") {
		t.Skipf("SKIPPED: the recipes are typed at the top of a checkout, and URDMA_BUILD is %q, expected %s/build; make test does that", build, dir)
	}
	return dir
}

func need(t *testing.T, programs []string) {
	t.Helper()
	for _, p := range programs {
		if name, ok := strings.CutPrefix(p, "$URDMA_RECIPES/"); ok {
			if _, err := os.Stat(filepath.Join(os.Getenv("URDMA_RECIPES"), name)); err != nil {
				t.Skipf("SKIPPED: URDMA_RECIPES=%q names no directory with %s", os.Getenv("URDMA_RECIPES"), name)
			}
			continue
		}
		if strings.ContainsRune(p, '*') {
			if found, _ := filepath.Glob(p); len(found) == 0 {
				t.Skipf("SKIPPED: there is no %s", p)
			}
			continue
		}
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("SKIPPED: %s is not installed; %s", p, labtest.Install(p))
		}
	}
}

// limit is the longest time for a block that does not hang.
const limit = 5 * time.Minute

// typed runs a block in a shell, and ends everything that it leaves behind.
func typed(t *testing.T, dir string, env []string, text string) string {
	t.Helper()
	for try := 1; ; try++ {
		out, err := shell(t, dir, env, text)
		switch {
		case err == nil:
			return out
		case try < lab.MeasuredTries && lab.Unmeasured(out):
			t.Log("perftest could not measure the processor's clock; again")
		default:
			t.Fatalf("%v\n%s\n%s", err, text, lab.Tail(out, 40))
		}
	}
}

// awaitNoListener waits until urdmad has removed the listener of the last server. Otherwise sleep would take it for
// the next server's, which may have the same name.
func awaitNoListener(t *testing.T, n *lab.Node) {
	t.Helper()
	for end := time.Now().Add(lab.Patience); ; time.Sleep(20 * time.Millisecond) {
		out, err := n.Urdma("show", "listener", "--json")
		if err == nil && strings.TrimSpace(out) == "[]" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("urdmad still has a listener: %v\n%s", err, out)
		}
	}
}

// alone runs a block in its own network namespace, if allowed: its servers have TCP port numbers that other programs
// on the machine may use (18515 is perftest's and the pingpongs').
func alone(text string) string {
	if os.Getuid() != 0 || exec.Command("unshare", "--net", "true").Run() != nil {
		return text
	}
	quoted := "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	return "exec unshare --net bash -ec 'ip link set lo up; eval \"$0\"' " + quoted
}

func shell(t *testing.T, dir string, env []string, text string) (string, error) {
	t.Helper()
	c := exec.Command("bash", "-ec", text)
	var out bytes.Buffer
	c.Dir, c.Stdout, c.Stderr = dir, &out, &out
	c.Env = append(os.Environ(), env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.WaitDelay = 5 * time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	end := time.AfterFunc(limit, func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
	err := c.Wait()
	end.Stop()
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // ESRCH if nothing is left
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return out.String(), err
}

func TestRecipes(t *testing.T) {
	cook(t, "../../docs/recipes.md", recipes)
}

// cook executes each block of a page as written.
func cook(t *testing.T, page string, recipes map[string]recipe) {
	t.Helper()
	dir := top(t)
	all := sections(t, page)
	for name := range all {
		if recipes[name].prints == nil {
			t.Errorf("nobody says what %q prints", name)
		}
	}
	l, err := lab.New(filepath.Join(dir, "build"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	n, _, err := l.Join(lab.Loopback, nil)
	if err != nil {
		t.Fatal(err)
	}
	goRoot, err := exec.Command("../../.ci/go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	first := t.TempDir()
	if err := os.WriteFile(filepath.Join(first, "sleep"), []byte(sleep), 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"URDMA_SOCKET=" + n.Socket(), "URDMA=" + filepath.Join(dir, "build/urdma"),
		"PATH=" + first + ":" + strings.TrimSpace(string(goRoot)) + "/bin:" + os.Getenv("PATH")}
	for name, want := range recipes {
		t.Run(name, func(t *testing.T) {
			if len(all[name]) != len(want.prints) {
				t.Fatalf("the page has %d blocks of it, expected %d", len(all[name]), len(want.prints))
			}
			need(t, want.programs)
			if name == "Three hosts for teaching" &&
				exec.Command("unshare", "--user", "--map-root-user", "--net", "true").Run() != nil {
				t.Skip("SKIPPED: no user namespaces can be made here")
			}
			before := received(t, n)
			for i, text := range all[name] {
				awaitNoListener(t, n)
				text = strings.ReplaceAll(text, "198.18.0.1", n.Address)
				if out := typed(t, dir, append(slices.Clone(env), "LISTENS="+want.listens[i]), alone(text)); !strings.Contains(out,
					want.prints[i]) {
					t.Errorf("%s\nprints\n%s\nexpected %q", text, lab.Tail(out, 40), want.prints[i])
				}
			}
			if bytes := received(t, n) - before; bytes < moves[name] {
				t.Errorf("urdmad moved %d bytes, expected %d or more", bytes, moves[name])
			}
		})
	}
}

// TestTwoMachines executes docs/two-machines.md on two hosts with one cable.
func TestTwoMachines(t *testing.T) {
	dir := top(t)
	need(t, []string{"rping", "ip", "nsenter"})
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: two hosts with an interface take root")
	}
	for name, blocks := range sections(t, "../../docs/two-machines.md") {
		if name == oneMachine {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if len(blocks) != 2 {
				t.Fatalf("%d blocks, expected one for each machine", len(blocks))
			}
			for _, text := range blocks {
				if n := strings.Count(text, "\n"); n != 4 {
					t.Errorf("%d commands, four are promised:\n%s", n, text)
				}
			}
			l, err := lab.New(filepath.Join(dir, "build"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(l.Close)
			machines := twoMachines(t, l)
			server := make(chan string, 1)
			go func() { server <- onMachine(t, dir, machines[0], machines[1], blocks[0]) }()
			client := onMachine(t, dir, machines[1], machines[0], blocks[1])
			if out := <-server; !strings.Contains(client, "ping data: rdma-ping-4") {
				t.Errorf("A:\n%s\nB:\n%s", out, client)
			} else if strings.Contains(blocks[0], "urdma ping") && !strings.Contains(out+client, "3 answered") {
				t.Errorf("no ping:\n%s\n%s", out, client)
			}
		})
	}
}

const oneMachine = "Both on one machine"

// TestOneMachine executes the block for one machine in docs/two-machines.md, and in the two shells its lines for UDP.
func TestOneMachine(t *testing.T) {
	dir := top(t)
	need(t, []string{"rping", "ip", "unshare"})
	if os.Getuid() != 0 || exec.Command("unshare", "--mount", "--net", "--pid", "--fork", "true").Run() != nil {
		t.Skip("SKIPPED: needs root, and namespaces")
	}
	page := sections(t, "../../docs/two-machines.md")
	var lines []string
	for _, line := range strings.Split(page[oneMachine][0], "\n") {
		command, host, shell := strings.Cut(line, "#")
		if !shell {
			lines = append(lines, line)
			continue
		}
		i := slices.Index([]string{"A", "B"}, host[1:2])
		sockets := []string{"/run/a/urdmad.sock", "/run/b/urdmad.sock"}
		lines = append(lines, command+" <<'.' &\n"+patiently(page["Without root, over UDP"][i], sockets[i], sockets[0])+
			"kill %1\n.")
	}
	lines = append(lines, "wait")
	script := filepath.Join(t.TempDir(), "typed")
	text := "mount -t tmpfs tmpfs /run\nsudo() { \"$@\"; }\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := typed(t, dir, nil, "unshare --mount --net --pid --fork --kill-child --mount-proc bash "+script)
	for _, want := range []string{"ping data: rdma-ping-4", "3 answered"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s\n%s", want, text, out)
		}
	}
}

// machine is a host, with its urdmad's socket.
type machine struct {
	*lab.Namespace
	home string
}

func (m machine) socket() string { return filepath.Join(m.home, "urdma", "urdmad.sock") }

// twoMachines makes namespaces joined by interfaces eth0, each with its address.
func twoMachines(t *testing.T, l *lab.Lab) (machines [2]machine) {
	t.Helper()
	for i := range machines {
		home, err := os.MkdirTemp("", "urdma-machine")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(home) })
		ns, err := l.NewNamespace()
		if err != nil {
			t.Skipf("SKIPPED: no network namespaces here: %v", err)
		}
		machines[i] = machine{ns, home}
	}
	for _, argv := range [][]string{
		{"ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth1"},
		{"ip", "link", "set", "eth1", "name", "eth0", "netns", machines[1].PID()},
	} {
		if err := machines[0].Run(argv...); err != nil {
			t.Fatal(err)
		}
	}
	for i, address := range []string{"10.0.0.1/24", "10.0.0.2/24"} {
		for _, line := range []string{"ip address add " + address + " dev eth0", "ip link set eth0 up",
			"ip route add default dev eth0"} {
			if err := machines[i].Run(strings.Fields(line)...); err != nil {
				t.Fatal(err)
			}
		}
	}
	return machines
}

// onMachine runs a block on a machine, in its own directory. Its last command waits until the other side is ready.
func onMachine(t *testing.T, dir string, m, peer machine, text string) string {
	home := m.home
	if err := os.Symlink(filepath.Join(dir, "build"), filepath.Join(home, "build")); err != nil {
		t.Error(err)
	}
	text = patiently(text, m.socket(), peer.socket())
	script := filepath.Join(home, "typed")
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
	argv := m.Command("bash", "-e", script)
	c := exec.Command(argv[0], argv[1:]...)
	var out bytes.Buffer
	c.Dir, c.Stdout, c.Stderr = home, &out, &out
	c.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+home, "URDMA_SOCKET=")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.WaitDelay = time.Second
	end := time.AfterFunc(limit, func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
	err := c.Run()
	end.Stop()
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // the urdmad
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		t.Errorf("%v\n%s\n%s", err, text, out.String())
	}
	return out.String()
}
