package kubelettest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
)

// launchAgent replaces ssh: mpirun gives it a host and a shell's command line, which it runs in a new container of that
// host. Open MPI's daemon there looks for the agent's first word, too.
const launchAgent = `host=$1
shift
printf '%%s\n' "export HOME=/dev/shm TMPDIR=/dev/shm; $*" >%[1]s/$host.sh
. %[1]s/$host.start
`

// testMPI runs NetPIPE, which checks the data, with a rank in a container of each node. MPI's own connections need a
// network, here the nodes'.
func testMPI(t *testing.T, a, b *node) {
	for _, p := range []string{"mpirun", "orted", "NPopenmpi"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("SKIPPED: needs %s of Open MPI 4: make deps, or .ci/deps mpi", p)
		}
	}
	l := a.e.l
	for _, n := range []*node{a, b} {
		name := "mpi-" + filepath.Base(n.dir)
		e := newMachine(t, l, name+".root")
		script := filepath.Join(l.Dir, name+".sh")
		write(t, script, "")
		write(t, filepath.Join(l.Dir, name+".start"), "exec "+quoted(e.command(container{name: name,
			args: []string{"sh", script}, uid: programUser, gid: programUser, network: n.container.network,
			volumes: []string{"/usr", "/etc", script}, devices: n.plugin.Devices("1"), cdi: n.path("cdi")})))
	}
	agent := filepath.Join(l.Dir, "launch")
	write(t, agent, fmt.Sprintf(launchAgent, l.Dir))
	job := start(t, l, "nsenter", "--net="+a.container.network, "env", "OMPI_ALLOW_RUN_AS_ROOT=1",
		"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "TMPDIR="+l.Dir, "mpirun", "-n", "2", "-H", "mpi-a,mpi-b",
		"--bind-to", "none", "--map-by", "node", "--leave-session-attached", "--mca", "plm_rsh_agent", "sh "+agent,
		"--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "oob_tcp_if_include", "veth0",
		"--mca", "pml", "ob1", "--mca", "btl", "openib,self", "--mca", "btl_openib_allow_ib", "1",
		"--mca", "btl_openib_warn_no_device_params_found", "0", "-x", "URDMA_TRANSPORT=ib",
		"NPopenmpi", "-o", "/dev/null", "-i", "-u", "140000", "-n", "2")
	if err := job.Wait(5 * time.Minute); err != nil {
		t.Fatalf("%v\n%s", err, job.Output())
	}
	if out := job.Output(); !strings.Contains(out, "131073 bytes") || strings.Contains(out, "check failed") {
		t.Errorf("NetPIPE has not compared messages of all sizes:\n%s", out)
	}
}

// newMachine is an engine whose container's root is empty but for links into /usr, for programs with many files:
// they need this machine's /usr as a volume. Two containers that start at once may not have one empty root: crun 1.8
// makes the directories that it mounts on, and fails if they appear meanwhile ("cannot mkdir `proc`: File exists").
func newMachine(t *testing.T, l *lab.Lab, root string) *engine {
	t.Helper()
	e := &engine{t: t, l: l, root: filepath.Join(l.Dir, root)}
	for _, name := range []string{"bin", "lib", "lib64"} {
		if err := os.MkdirAll(e.root, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("usr/"+name, filepath.Join(e.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// quoted is a command line as a shell reads it.
func quoted(argv []string) string {
	var words []string
	for _, a := range argv {
		words = append(words, "'"+strings.ReplaceAll(a, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ")
}
