package e2e

import (
	"encoding/json"
	"testing"

	"urdma/inspect"
	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestMemifRings: over memif each worker receives the packets of its clients' connections by its own ring.
func TestMemifRings(t *testing.T) {
	whole(t)
	need(t, "ib_write_bw")
	for _, protocol := range []string{"trp", "rocev2"} {
		t.Run(protocol, func(t *testing.T) {
			w := lab.Memif.WithWorkers(2)
			w.Protocol = protocol
			l := labtest.New(t)
			server, client, err := l.Join(w, nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 4 { // clients of both workers, in turn
				pass(t, lab.PerftestPair(server, client, "ib_write_bw", "-s", "65536", "-n", "200", "-b"))
			}
			for _, n := range []*lab.Node{server, client} {
				for _, v := range workersOf(t, l, n) {
					if v.Received < 1000 || v.HandedOn > v.Received/50 {
						t.Errorf("%s, worker %d: %d packets received, of those %d handed on to the other", n.Address, v.Number,
							v.Received, v.HandedOn)
					}
					t.Logf("%s, worker %d: %d packets received, %d handed on", n.Address, v.Number, v.Received, v.HandedOn)
				}
			}
		})
	}
}

func workersOf(t *testing.T, l *lab.Lab, n *lab.Node) (all []inspect.Worker) {
	t.Helper()
	if err := json.Unmarshal([]byte(urdma(t, n, l, "show", "worker", "--json")), &all); err != nil {
		t.Fatal(err)
	}
	return all
}
