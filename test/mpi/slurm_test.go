package mpi

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/programtest"
)

// slurm is a Slurm with two nodes, a and b, on this machine; each node is a host of the cluster. It runs as the first
// host's user, with that host's environment.
type slurm struct {
	*cluster
	dir string
}

// slurmConf is slurm.conf for a Slurm without root, whose nodes claim to have enough processors for every line.
const slurmConf = `ClusterName=lab
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=%[4]d
SlurmUser=%[2]s
SlurmdUser=%[2]s
AuthType=auth/munge
AuthInfo=socket=%[3]s/munge.sock
StateSaveLocation=%[3]s/state
SlurmdSpoolDir=%[3]s/spool.%%n
TmpFS=%[3]s/tmp.%%n
SlurmctldPidFile=%[3]s/slurmctld.pid
SlurmdPidFile=%[3]s/%%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
MessageTimeout=100
TCPTimeout=60
NodeName=a NodeHostname=%[1]s NodeAddr=127.0.0.1 Port=%[5]d CPUs=4
NodeName=b NodeHostname=%[1]s NodeAddr=127.0.0.1 Port=%[6]d CPUs=4
PartitionName=all Nodes=a,b Default=YES State=UP
`

// TestSlurm runs the command lines of docs/MPI.md for Slurm.
func TestSlurm(t *testing.T) {
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
	need(t, "munged", "slurmctld", "slurmd", "srun", "salloc", "sbatch")
	s := newSlurm(t, newCluster(t, lab.Memif))
	text, err := os.ReadFile("../../docs/MPI.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^ *((?:salloc|sbatch|OMPI_MCA_.* srun) .*urdma exec -- APP.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(found) < 3 {
		t.Errorf("docs/MPI.md has %d lines for Slurm, expected were salloc, sbatch and srun", len(found))
	}
	for _, line := range found {
		s.typed(t, strings.TrimSuffix(line[1], "`"))
	}
	s.left(t)
}

func newSlurm(t *testing.T, c *cluster) *slurm {
	t.Helper()
	s := &slurm{c, filepath.Join(c.hosts[0].Directory(), "slurm")}
	me, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if c.hosts[0].UID != 0 {
		me, err = user.LookupId(strconv.Itoa(c.hosts[0].UID))
	}
	if err != nil {
		t.Skipf("SKIPPED: Slurm wants users to have names: %v", err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	s.must(t, "mkdir", "-p", s.dir+"/state", s.dir+"/spool.a", s.dir+"/spool.b", s.dir+"/tmp.a", s.dir+"/tmp.b")
	s.must(t, "sh", "-c", "umask 077; head -c 1024 /dev/urandom >"+s.dir+"/munge.key")
	c.write(t, filepath.Join(c.lab.Dir, "slurm.conf"),
		fmt.Sprintf(slurmConf, host, me.Username, s.dir, programtest.FreePort(t),
			programtest.FreePort(t), programtest.FreePort(t)))
	// A script replaces urdma, because each node has its own urdmad.
	c.write(t, filepath.Join(c.lab.Dir, "on-node"),
		fmt.Sprintf("#!/bin/sh\nXDG_RUNTIME_DIR=%s/$SLURMD_NODENAME exec %s \"$@\"\n",
			c.lab.Dir, c.lab.Program("urdma")))
	s.daemons(t)
	return s
}

func (s *slurm) command(argv ...string) []string {
	return append([]string{"env", "SLURM_CONF=" + filepath.Join(s.lab.Dir, "slurm.conf")}, argv...)
}

// must runs a command that must succeed quickly.
func (s *slurm) must(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := s.wait(lab.Patience, s.command(argv...)); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

// daemons starts Slurm and waits for both nodes.
func (s *slurm) daemons(t *testing.T) {
	t.Helper()
	munge := []string{"munged", "--foreground", "--force"}
	for flag, file := range map[string]string{"key-file": "key", "socket": "sock", "pid-file": "pid", "log-file": "log",
		"seed-file": "seed"} {
		munge = append(munge, fmt.Sprintf("--%s=%s/munge.%s", flag, s.dir, file))
	}
	started := []*lab.Process{s.daemon(t, munge...)}
	s.until(t, started, func() bool { _, err := os.Stat(s.dir + "/munge.sock"); return !errors.Is(err, os.ErrNotExist) })
	started = append(started, s.daemon(t, "slurmctld", "-D", "-c"), s.daemon(t, "slurmd", "-D", "-N", "a"),
		s.daemon(t, "slurmd", "-D", "-N", "b"))
	t.Cleanup(func() { // ends programs that a failed test left running, before its daemons end
		_, _ = s.wait(lab.Patience, s.command("scancel", "--partition=all"))
	})
	s.until(t, started, func() bool {
		out, err := s.wait(lab.Patience, s.command("sinfo", "-h", "-N", "-o", "%T"))
		return err == nil && strings.Count(out, "idle\n") == 2
	})
}

func (s *slurm) daemon(t *testing.T, argv ...string) *lab.Process {
	t.Helper()
	p, err := s.hosts[0].Start(s.command(argv...)...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (s *slurm) until(t *testing.T, started []*lab.Process, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(lab.Patience); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().Before(deadline) {
			continue
		}
		for _, p := range started {
			t.Logf("%s", lab.Tail(p.Output(), 20))
		}
		t.Fatal("Slurm does not start")
	}
}

// typed runs a line in a shell of the first host, as the cluster's method does.
func (s *slurm) typed(t *testing.T, line string) {
	t.Helper()
	if strings.Contains(line, "openib") {
		needOpenib(t)
	}
	if strings.Contains(line, "--mpi=pmix") {
		if out, err := s.wait(lab.Patience, s.command("srun", "--mpi=list")); err != nil || !strings.Contains(out, "pmix") {
			t.Skipf("SKIPPED: this Slurm has no PMIx: %v\n%s", err, out)
		}
	}
	before := s.sent(t)
	said := filepath.Join(s.dir, "said")
	ready := strings.NewReplacer(" urdma ", " "+filepath.Join(s.lab.Dir, "on-node")+" ", "APP", s.check+" flood",
		"sbatch ", "sbatch -W -o "+said+" ").Replace(line)
	out, err := s.wait(5*time.Minute, s.command("OMPI_MCA_oob_tcp_if_include=lo", "sh", "-c", ready))
	if strings.HasPrefix(line, "sbatch ") {
		text, readErr := os.ReadFile(said)
		out, err = out+string(text), errors.Join(err, readErr)
	}
	if err != nil || !strings.Contains(out, "OK: flood, 2 ranks") {
		t.Errorf("%s: %v\n%s", line, err, lab.Tail(out, 40))
	}
	s.carried(t, line, before, 1<<20)
}
