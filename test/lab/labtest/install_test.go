package labtest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"urdma/test/lab/labtest"
)

// TestInstall: the command that a skip message recommends installs the program's package.
func TestInstall(t *testing.T) {
	script, err := os.ReadFile("../../../.ci/deps")
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z]+)='(.*)'$`).FindAllStringSubmatch(string(script), -1) {
		set[m[1]] = " " + m[2] + " "
	}
	set["make deps"] = set["build"] + set["demo"] + set["test"] + set["mpi"]
	for program, pkg := range map[string]string{
		"rping": "rdmacm-utils", "ib_write_bw": "perftest", "ibv_devinfo": "ibverbs-utils", "ip": "iproute2",
		"nsenter": "util-linux",
		"sysctl":  "procps", "tshark": "tshark", "ping": "iputils-ping", "fio": "fio", "qperf": "qperf", "gdb": "gdb",
		"valgrind": "valgrind",
		"gcc":      "gcc", "fi_pingpong": "libfabric-bin", "ucx_perftest": "ucx-utils", "dpdk-testpmd": "dpdk-dev",
		"mpirun": "openmpi-bin",
		"mpicc":  "libopenmpi-dev", "mpiexec.mpich": "mpich", "NPopenmpi": "netpipe-openmpi", "hpcc": "hpcc",
		"mkdocs": "mkdocs", "mandoc": "mandoc", "sockperf": "sockperf", "munged": "munge", "slurmctld": "slurmctld",
		"slurmd": "slurmd",
		"srun":   "slurm-client", "salloc": "slurm-client", "sbatch": "slurm-client",
		"qemu-system-x86_64": "qemu-system-x86", "ceph-mon": "ceph-mon", "ceph-osd": "ceph-osd", "rados": "ceph-common",
	} {
		how := labtest.Install(program)
		if packages := set[strings.TrimPrefix(how, ".ci/deps ")]; !strings.Contains(packages, " "+pkg+" ") {
			t.Errorf("%q is said to install %s, and its packages are:%s", how, program, packages)
		}
	}
	if how := labtest.Install("perf"); how == "make deps" {
		t.Errorf("%q installs no perf", how)
	}
}
