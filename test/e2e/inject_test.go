package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"urdma/inspect"
	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// portOf returns the name of a host's port.
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

// TestInjectLink: a perftest run loses its link for 200 ms and continues; with a link that stays down it ends with an
// error. The same scenario file has the same effect again; in short runs only the first part is repeated.
func TestInjectLink(t *testing.T) {
	whole(t)
	need(t, "ib_write_bw")
	ends := 1 // in each, programs poll until the peer counts as dead
	if long {
		ends = 2
	}
	a, b := labtest.Join(t, lab.Memif, lab.Config{"death_timeout_ms": 4000})
	loop, _ := labtest.Join(t, lab.Loopback, lab.Config{"death_timeout_ms": 4000})
	two, _ := labtest.Join(t, lab.Loopback.WithWorkers(2), lab.Config{"death_timeout_ms": 4000})
	for _, wire := range []struct {
		name string
		a, b *lab.Node
		runs map[string]string // scenarios that a run survives, with their lines in urdma inject list
	}{
		{"memif", a, b, map[string]string{
			"after send opcode=RDMA_WRITE nth=100; port PORT down; wait 200ms; port PORT up":                         "after send",
			"after send opcode=RDMA_WRITE nth=100; wire PORT partition for=200ms":                                    "partition",
			"after send opcode=RDMA_WRITE nth=3\nwire PORT loss=5% burst=3 duplicate=1% reorder=1% seed=7 for=200ms": "loss=5%",
		}},
		{"one urdmad", loop, loop, map[string]string{
			"after send opcode=RDMA_WRITE nth=100; port PORT down; wait 200ms; port PORT up": "after send",
		}},
		{"two workers of one urdmad", two, two, map[string]string{
			"after send opcode=RDMA_WRITE nth=3\nwire PORT loss=5% burst=3 duplicate=1% reorder=1% seed=7 for=200ms": "loss=5%",
		}},
	} {
		t.Run(wire.name, func(t *testing.T) {
			l := injectedLink{t, lab.PerftestPair(wire.a, wire.b, "ib_write_bw", "-n", "2000", "-s", "65536"), wire.b,
				portOf(t, wire.b)}
			for scenario, listed := range wire.runs {
				for range 2 {
					l.survives(scenario, listed)
				}
			}
			works(t, wire.a, wire.b)
			for range ends {
				l.ends("after send opcode=RDMA_WRITE nth=3 # the third Write\nwire PORT loss=5% seed=7 for=200ms\nwait 200ms\nport PORT down", wire.a != loop)
			}
			works(t, wire.a, wire.b)
		})
	}
}

// injectedLink is a perftest run, with the urdmad and port whose link is taken down.
type injectedLink struct {
	t    *testing.T
	run  lab.Pair
	node *lab.Node
	port string
}

// begin starts a scenario file.
func (l *injectedLink) begin(scenario string) {
	l.t.Helper()
	file := filepath.Join(outputs(l.t, l.node), "scenario")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(scenario, "PORT", l.port)), 0o644); err != nil {
		l.t.Fatal(err)
	}
	if out, err := l.node.Urdma("inject", "-f", file); err != nil {
		l.t.Fatalf("%s: %v\n%s", scenario, err, out)
	}
}

func (l *injectedLink) now(statement string) {
	l.t.Helper()
	if out, err := l.node.Urdma("inject", statement); err != nil {
		l.t.Fatalf("%s: %v\n%s", statement, err, out)
	}
}

func (l *injectedLink) survives(scenario, listed string) {
	l.t.Helper()
	l.begin(scenario)
	got := pass(l.t, l.run)
	if rows, err := lab.ParsePerftest(got.Client); err != nil || rows[0].Bytes != 65536 {
		l.t.Errorf("%s: %v:\n%s", scenario, err, got.Client)
	}
	list, err := l.node.Urdma("inject", "list")
	if err != nil || !strings.Contains(list, listed) {
		l.t.Errorf("%s: %v\n%s", scenario, err, list)
	}
	l.now("clear") // may come before the scenario's own end
	l.now("port " + l.port + " up")
}

// ends lets a scenario end a run; wire statements work only on a wire.
func (l *injectedLink) ends(scenario string, wired bool) {
	l.t.Helper()
	if !wired {
		scenario = strings.ReplaceAll(scenario, "wire PORT loss=5% seed=7 for=200ms\n", "")
	}
	l.begin(scenario)
	longer := l.run // longer than the scenario
	longer.Server, longer.Client = append(slices.Clone(l.run.Server), "-n", "1000000"),
		append(slices.Clone(l.run.Client), "-n", "1000000")
	if got, err := longer.Run(); err == nil {
		l.t.Errorf("without a link the run succeeds:\n%s", got.Client)
	} else if !strings.Contains(got.Client+got.Server, "status 12") &&
		!strings.Contains(got.Client+got.Server, "transport retry counter exceeded") {
		l.t.Errorf("the run ends otherwise:\n%s\n%s", got.Client, got.Server)
	}
	// On a busy machine the run may have ended before the scenario, because a peer was silent for too long.
	await(l.t, "the scenario's end", func() (bool, string) {
		out, err := l.node.Urdma("show", "port", "--json")
		return err == nil && !gjson.Get(out, "0.link_up").Bool(), out
	})
	l.now("port " + l.port + " up")
}
