package mpi

import (
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
)

// mpichWays are the ways from Debian's MPICH, which uses UCX, to verbs.
var mpichWays = []way{
	{"rc", nil, []string{"UCX_TLS=rc,ud,self"}},
	{"ud", nil, []string{"UCX_TLS=ud_verbs,self"}},
}

// TestMPICH: the same programs with Debian's MPICH, within a urdmad and between two.
func TestMPICH(t *testing.T) {
	need(t, "mpicc.mpich", "mpiexec.mpich")
	for _, wire := range []lab.Wire{lab.Loopback, lab.Memif} {
		t.Run(wire.Name, func(t *testing.T) {
			c := newCluster(t, wire)
			// gcc warns about the type of MPI_STATUSES_IGNORE in MPICH's header.
			program := c.compile(t, "mpicc.mpich", "check.mpich", "-Wno-stringop-overflow")
			c.passMPICH(t, mpichWays[0], program, "threads", "flood", "types", "collectives", "one_sided")
			c.passMPICH(t, mpichWays[1], program, "flood", "types", "collectives", "one_sided")
			for _, w := range mpichWays {
				if long {
					c.passMPICH(t, w, program, "point_to_point")
				}
			}
			c.left(t)
		})
	}
}

// passMPICH runs tests with two ranks, which must succeed.
func (c *cluster) passMPICH(t *testing.T, w way, program string, tests ...string) {
	t.Helper()
	argv := []string{"mpiexec.mpich", "-n", "2"}
	if len(c.hosts) > 1 {
		// Without mpiexec's environment, which names the first host's directories.
		argv = append(argv, "-genvnone", "-hosts", c.hosts[0].Name+","+c.hosts[1].Name, "-ppn", "1", "-launcher", "ssh",
			"-launcher-exec", c.launch, "-iface", "lo")
	}
	for _, variable := range append(w.environment, "UCX_NET_DEVICES=urdma0:1", "URDMA_TRANSPORT=ib") {
		name, value, _ := strings.Cut(variable, "=")
		argv = append(argv, "-genv", name, value)
	}
	before := c.sent(t)
	out, err := c.wait(5*time.Minute, append(append(argv, c.lab.Program("urdma"), "exec", "--", program), tests...))
	if err != nil {
		t.Fatalf("%s: %v: %v\n%s", w.name, tests, err, lab.Tail(out, 40))
	}
	for _, test := range tests {
		if !strings.Contains(out, "OK: "+test+", 2 ranks") {
			t.Errorf("%s: %s did not end well:\n%s", w.name, test, lab.Tail(out, 40))
		}
	}
	c.carried(t, w.name, before, 1<<10)
}
