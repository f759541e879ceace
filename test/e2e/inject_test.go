package e2e

import (
	"strings"
	"testing"

	"urdma/inspect"
	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// portOf is the name of a host's port.
func portOf(t *testing.T, n *lab.Node) string {
	t.Helper()
	s, err := inspect.Open(n.Socket())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	snapshot, err := s.Fetch()
	if err != nil {
		t.Fatal(err)
	}
	return snapshot.Ports[0].Name
}

// TestInjectLink: a perftest run loses its link for 200 ms and goes on; with a link that
// does not come back it ends with an error.
func TestInjectLink(t *testing.T) {
	need(t, "ib_write_bw")
	a, b := labtest.Join(t, lab.Memif, lab.Config{"death_timeout_ms": 2000})
	name := portOf(t, b)
	inject := func(statement string) {
		t.Helper()
		if out, err := b.Urdma("inject", statement); err != nil {
			t.Fatalf("%s: %v\n%s", statement, err, out)
		}
	}
	run := lab.PerftestPair(a, b, "ib_write_bw", "-n", "2000", "-s", "65536")
	for scenario, listed := range map[string]string{
		"after send opcode=RDMA_WRITE nth=100; port " + name + " down; wait 200ms; port " + name + " up": "after send",
		"after send opcode=RDMA_WRITE nth=100; wire " + name + " partition for=200ms":                    "partition",
		"wire " + name + " loss=1% burst=3 duplicate=1% reorder=1% seed=7 for=1h":                        "loss=1%",
	} {
		inject(scenario)
		got := pass(t, run)
		if rows, err := lab.ParsePerftest(got.Client); err != nil || rows[0].Bytes != 65536 {
			t.Errorf("%s: %v:\n%s", scenario, err, got.Client)
		}
		list, err := b.Urdma("inject", "list")
		if err != nil || !strings.Contains(list, listed) {
			t.Errorf("%s: %v\n%s", scenario, err, list)
		}
		inject("clear")
	}
	works(t, a, b)
	inject("after send opcode=RDMA_WRITE nth=100; port " + name + " down")
	if got, err := run.Run(); err == nil {
		t.Errorf("without a link the run succeeds:\n%s", got.Client)
	}
	inject("port " + name + " up")
	works(t, a, b)
}
