package mpi

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"urdma/test/lab"
)

// cluster is hosts joined by a wire, and what MPI needs to start ranks there.
type cluster struct {
	lab           *lab.Lab
	hosts         []*lab.Node
	check, launch string
}

// launchAgent stands in ssh's place. A rank starts, as there, with next to nothing
// in its environment, a host name and a directory for temporary files of its own.
const launchAgent = `#!/bin/sh
host=$1
shift
named=
unshare --keep-caps --map-current-user --uts true 2>/dev/null && named='unshare --keep-caps --map-current-user --uts'
dir=${0%/*}/$host
cd "$dir" && exec env -i PATH="$PATH" XDG_RUNTIME_DIR="$dir" TMPDIR="$dir" HOME="$dir" LC_ALL=C \
	$named sh -c "[ -z '$named' ] || hostname $host; $*"
`

func newCluster(t *testing.T, w lab.Wire) *cluster {
	t.Helper()
	for _, program := range []string{"mpirun", "mpicc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (openmpi-bin, libopenmpi-dev); make deps", program)
		}
	}
	build := os.Getenv("URDMA_BUILD")
	if _, err := os.Stat(filepath.Join(build, "urdmad")); build == "" || err != nil {
		t.Skip("URDMA_BUILD doesn't say where urdmad is; make test does")
	}
	l, err := lab.New(build)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	c := &cluster{lab: l, check: filepath.Join(l.Dir, "check"), launch: filepath.Join(l.Dir, "launch")}
	sources, _ := filepath.Glob("testdata/*.c")
	args := append([]string{"-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-o", c.check}, sources...)
	if out, err := exec.Command("mpicc", append(args, "-lpthread")...).CombinedOutput(); err != nil {
		t.Fatalf("mpicc: %v\n%s", err, out)
	}
	if err := os.WriteFile(c.launch, []byte(launchAgent), 0o755); err != nil {
		t.Fatal(err)
	}
	a, b, err := l.Join(w, lab.Config{"limits": map[string]any{"user_share": 100}})
	if err != nil {
		t.Fatal(err)
	}
	if c.hosts = []*lab.Node{a}; b != a {
		c.hosts = append(c.hosts, b)
	}
	return c
}

// arguments are mpirun's: ranks spread over the hosts, on a machine with few cores
// and whatever interfaces, started by the agent where there are several hosts.
func (c *cluster) arguments(ranks int, parameters []string) []string {
	argv := []string{"mpirun", "--bind-to", "none", "--oversubscribe", "-n", fmt.Sprint(ranks), "--mca", "oob_tcp_if_include", "lo"}
	if len(c.hosts) > 1 {
		each := (ranks + 1) / 2
		argv = append(argv, "--map-by", "node", "--mca", "plm_rsh_agent", c.launch, "--mca", "plm_rsh_no_tree_spawn", "1",
			"-H", fmt.Sprintf("%s:%d,%s:%d", c.hosts[0].Name, each, c.hosts[1].Name, each))
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

func (c *cluster) wait(limit time.Duration, argv []string) (string, error) {
	p, err := c.hosts[0].Start(argv...)
	if err != nil {
		return "", err
	}
	err = p.Wait(limit)
	return p.Output(), err
}

// sent is how many bytes each host's urdmad has sent for its programs.
func (c *cluster) sent(t *testing.T) (bytes []uint64) {
	t.Helper()
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

// left waits until no program of the cluster is a client any more.
func (c *cluster) left(t *testing.T) {
	t.Helper()
	for _, h := range c.hosts {
		var out string
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
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
