package e2e

import (
	"syscall"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestIdle measures the processor time of a urdmad whose connections are open and silent: both programs are stopped
// during a transfer. It prints the figure, and fails only if the machine's noise can't be the cause.
func TestIdle(t *testing.T) {
	whole(t)
	for _, w := range []lab.Wire{lab.Loopback, lab.Memif, lab.UDP, lab.TCP, lab.AFPacket, lab.AFXDP} {
		t.Run(w.Name, func(t *testing.T) {
			// Stopped programs answer nothing, but urdmad answers for them.
			a, b := labtest.Join(t, w, nil)
			pair := lab.Pair{ServerNode: a, Server: []string{"rping", "-s"}}
			server, err := pair.StartServer()
			if err != nil {
				t.Fatal(err)
			}
			client, err := b.Exec("rping", "-c", "-a", a.Address)
			if err != nil {
				t.Fatal(err)
			}
			if err := underWay(t, b, client); err != nil {
				t.Fatal(err)
			}
			for _, p := range []*lab.Process{server, client} {
				p.Signal(syscall.SIGSTOP)
			}
			for _, n := range labtest.Nodes(a, b) {
				measureIdle(t, w, n)
			}
			client.Kill()
			server.Kill()
		})
	}
}

func measureIdle(t *testing.T, w lab.Wire, n *lab.Node) {
	const length = 2 * time.Second
	share := 100.0
	// earlier work may take a while to end
	for end := time.Now().Add(lab.Patience); share > 25 && time.Now().Before(end); {
		begin := time.Now()
		took := busyFor(t, n, length)
		share = 100 * float64(took) / float64(time.Since(begin))
	}
	t.Logf("MEASURED idle with a connection open, %s: urdmad %s takes %.1f %% of a core", w.Name, n.Name, share)
	if share > 25 {
		t.Errorf("an idle urdmad takes %.1f %% of a core, expected under 2", share)
	}
	out, err := n.Urdma("show", "qp", "--json")
	if err != nil || out == "[]\n" {
		t.Errorf("the connection is gone: %v %s", err, out)
	}
}
