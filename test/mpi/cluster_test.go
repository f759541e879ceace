package mpi

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// cluster is hosts joined by a wire, with everything that MPI needs to start ranks there.
type cluster struct {
	lab           *lab.Lab
	hosts         []*lab.Node
	check, launch string
}

// launchAgent replaces ssh. As with ssh, a rank starts with an almost empty environment, its own host name and its
// own directory for temporary files. Next to the agent is a file for each host with the command to get there.
const launchAgent = `#!/bin/sh
while case $1 in -*) true ;; *) false ;; esac; do shift; done # MPICH's -x, for X11
host=$1
shift
dir=${0%/*}/$host
enter=$(cat "${0%/*}/enter.$host")
named='unshare --keep-caps --map-current-user --uts'
$enter $named true 2>/dev/null || named=
cd "$dir" && exec env -i PATH="$PATH" XDG_RUNTIME_DIR="$dir" TMPDIR="$dir" HOME="$dir" LC_ALL=C \
	$enter $named sh -c "[ -z '$named' ] || hostname $host; $*"
`

// newCluster sets up the one or two hosts of a wire.
func newCluster(t *testing.T, w lab.Wire) *cluster {
	t.Helper()
	return newHosts(t, w, func(l *lab.Lab, settings lab.Config) ([]*lab.Node, error) {
		a, b, err := l.Join(w, settings)
		if a == b {
			return []*lab.Node{a}, err
		}
		return []*lab.Node{a, b}, err
	})
}

func newHosts(t *testing.T, w lab.Wire, join func(*lab.Lab, lab.Config) ([]*lab.Node, error)) *cluster {
	t.Helper()
	need(t, "mpirun", "mpicc")
	build := os.Getenv("URDMA_BUILD")
	if _, err := os.Stat(filepath.Join(build, "urdmad")); build == "" || err != nil {
		t.Skip("URDMA_BUILD doesn't say where urdmad is; make test does")
	}
	l, err := lab.New(build)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if err := l.Can(w); err != nil {
		t.Skip(err)
	}
	c := &cluster{lab: l, launch: filepath.Join(l.Dir, "launch")}
	c.check = c.compile(t, "mpicc", "check")
	if c.hosts, err = join(l, lab.Config{"limits": map[string]any{"user_share": 100}}); err != nil {
		t.Fatal(err)
	}
	c.write(t, c.launch, launchAgent)
	for _, h := range c.hosts {
		c.write(t, filepath.Join(l.Dir, "enter."+h.Name), strings.Join(h.Enter(), " "))
	}
	return c
}

// need skips a test that uses programs which are not installed.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed; %s", program, labtest.Install(program))
		}
	}
}

// compile builds the programs of testdata with the compiler of an MPI.
func (c *cluster) compile(t *testing.T, compiler, name string, flags ...string) string {
	t.Helper()
	program := filepath.Join(c.lab.Dir, name)
	sources, _ := filepath.Glob("testdata/*.c")
	args := slices.Concat([]string{"-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-o", program}, flags,
		sources)
	if out, err := exec.Command(compiler, append(args, "-lpthread")...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, out)
	}
	return program
}

func (c *cluster) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// arguments returns mpirun's arguments: ranks are spread over the hosts, on machines with few cores and any
// interfaces, and with several hosts the agent starts them.
func (c *cluster) arguments(ranks int, parameters []string) []string {
	argv := []string{"mpirun", "--bind-to", "none", "--oversubscribe", "-n", fmt.Sprint(ranks)}
	inside := "lo"
	if c.hosts[0].Net != nil {
		inside = "veth0"
	}
	argv = append(argv, "--mca", "oob_tcp_if_include", inside)
	if len(c.hosts) > 1 {
		each := (ranks + len(c.hosts) - 1) / len(c.hosts)
		var slots []string
		for _, h := range c.hosts {
			slots = append(slots, fmt.Sprintf("%s:%d", h.Name, each))
		}
		argv = append(argv, "--map-by", "node", "--mca", "plm_rsh_agent", c.launch, "--mca", "plm_rsh_no_tree_spawn", "1",
			"-H", strings.Join(slots, ","))
	}
	for parameter := range slices.Chunk(parameters, 2) {
		argv = append(argv, "--mca", parameter[0], parameter[1])
	}
	return argv
}

// run starts ranks of a program, each under urdma exec.
func (c *cluster) run(ranks int, w way, limit time.Duration, program ...string) (string, error) {
	argv := c.arguments(ranks, w.parameters)
	for _, variable := range w.environment {
		argv = append(argv, "-x", variable)
	}
	argv = append(argv, c.lab.Program("urdma"), "exec", "--")
	return c.wait(limit, append(argv, program...))
}

// wait runs mpirun on the first host to its end: as that host's user, or, if the agent must enter other hosts'
// namespaces, as the lab's user.
func (c *cluster) wait(limit time.Duration, argv []string) (string, error) {
	h := c.hosts[0]
	start := h.Start
	if h.Net != nil {
		start = func(argv ...string) (*lab.Process, error) {
			env := []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + c.lab.Dir, "HOME=" + c.lab.Dir, "LC_ALL=C",
				"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}
			return c.lab.Start(lab.Options{Env: env, Dir: c.lab.Dir}, h.Net.Command(argv...)...)
		}
	}
	p, err := start(argv...)
	if err != nil {
		return "", err
	}
	p.Report = func() string { return c.lab.Where() + "\n" + c.queuePairs() }
	err = p.Wait(limit)
	return p.Output(), err
}

// queuePairs returns the state of each host's queue pairs, for the report on a job that hangs.
func (c *cluster) queuePairs() (all string) {
	for _, h := range c.hosts {
		out, err := h.Urdma("show", "qp", "--json")
		all += fmt.Sprintf("%s: %v\n%s\n", h.Name, err, lab.Tail(out, 2000))
	}
	return all
}

// sent returns the number of bytes that each host's urdmad has sent for its programs; nothing if urdmad can't be
// asked.
func (c *cluster) sent(t *testing.T) (bytes []uint64) {
	t.Helper()
	if lab.Core() {
		return nil
	}
	for _, h := range c.hosts {
		out, err := h.Urdma("status", "--json")
		var s struct {
			Totals struct {
				Work struct {
					Sent uint64 `json:"bytes_sent"`
				}
			}
		}
		if err == nil {
			err = json.Unmarshal([]byte(out), &s)
		}
		if err != nil {
			t.Fatalf("urdma status: %v\n%s", err, out)
		}
		bytes = append(bytes, s.Totals.Work.Sent)
	}
	return bytes
}

// carried checks that each urdmad has sent at least that many bytes since before.
func (c *cluster) carried(t *testing.T, what string, before []uint64, least uint64) {
	t.Helper()
	for i, n := range c.sent(t) {
		if n-before[i] < least {
			t.Errorf("%s: urdmad of host %s sent %d bytes, at least %d were expected", what, c.hosts[i].Name, n-before[i], least)
		}
	}
}

// left waits until no program of the cluster is a client any more; if urdmad can't be asked, until it maps no
// client's memory.
func (c *cluster) left(t *testing.T) {
	t.Helper()
	if lab.Core() {
		c.givenBack(t)
		return
	}
	for _, h := range c.hosts {
		var out string
		for deadline := time.Now().Add(lab.Patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			var clients []any
			var err error
			if out, err = h.Urdma("show", "client", "--json"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if json.Unmarshal([]byte(out), &clients) == nil && len(clients) == 0 {
				out = ""
				break
			}
		}
		if out != "" {
			t.Errorf("host %s has clients left: %s", h.Name, out)
		}
	}
}

// givenBack waits until no urdmad maps memory of a client, which it does a moment longer than it lists the client.
func (c *cluster) givenBack(t *testing.T) {
	t.Helper()
	for _, h := range c.hosts {
		n, err := h.ClientMemory()
		for deadline := time.Now().Add(lab.Patience); err == nil && n != 0 &&
			time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			n, err = h.ClientMemory()
		}
		if err != nil || n != 0 {
			t.Errorf("urdmad of host %s still has %d mappings of clients: %v", h.Name, n, err)
		}
	}
}
