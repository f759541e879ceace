package mpi

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
)

// lines returns the lines of a page that start a job over openib.
var lines = regexp.MustCompile(`(?m)^ *(mpirun .*openib.* exec -- \S+|urdma run -- mpirun .*openib.* APP)`)

// TestDocumentedLines runs the command lines of docs/MPI.md: on one host, or, if a line names two hosts, between two.
func TestDocumentedLines(t *testing.T) {
	needOpenib(t)
	one, two := newCluster(t, lab.Loopback), newCluster(t, lab.Memif)
	const page = "../../docs/MPI.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := lines.FindAllStringSubmatch(string(text), -1)
	if len(found) < 2 {
		t.Errorf("%s has %d lines, expected were one with shared receive queues and one without", page, len(found))
	}
	for _, line := range found {
		c := one
		if strings.Contains(line[1], "hostA,hostB") {
			c = two
		}
		c.typed(t, line[1])
	}
}

// typed runs a line in a shell of the first host, with the paths of the programs. The environment has the lab's
// settings: the replacement of ssh, and as many ranks as the line wants on any number of processors.
func (c *cluster) typed(t *testing.T, line string) {
	t.Helper()
	before := c.sent(t)
	ready := strings.NewReplacer("build/urdma ", c.lab.Program("urdma")+" ", " urdma ", " "+c.lab.Program("urdma")+" ",
		"urdma run ", c.lab.Program("urdma")+" run ", "hostA,hostB", "a,b",
		"./program", c.check+" flood", "APP", c.check+" flood").Replace(line)
	out, err := c.wait(5*time.Minute, []string{"env", "OMPI_MCA_plm_rsh_agent=" + c.launch,
		"OMPI_MCA_plm_rsh_no_tree_spawn=1",
		"OMPI_MCA_oob_tcp_if_include=lo", "OMPI_MCA_rmaps_base_oversubscribe=1", "sh", "-c", ready})
	if err != nil || !strings.Contains(out, "OK: flood, 2 ranks") {
		t.Errorf("%s: %v\n%s", line, err, lab.Tail(out, 40))
	}
	if !strings.HasPrefix(line, "urdma run ") { // these lines have a urdmad of their own
		c.carried(t, line, before, 1<<20)
	}
}
