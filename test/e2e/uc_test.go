package e2e

import (
	"slices"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestUC runs the programs with queue pairs of type UC: messages without acknowledgement. These wires lose no message
// for which the programs wait.
func TestUC(t *testing.T) {
	for _, c := range []struct {
		wire  lab.Wire
		share share
	}{
		{lab.Loopback, even}, {lab.Loopback.WithWorkers(2), odd}, {lab.Memif, odd}, {lab.AFPacketKernel, even},
		{lab.TCP, every},
	} {
		t.Run(c.wire.Name, func(t *testing.T) {
			a, b := labtest.Join(t, c.wire, nil)
			n := &byNumber{server: a, client: b, tcp: "127.0.0.1", share: c.share}
			if c.wire.NeedsNamespaces() {
				n.tcp = a.Address
			}
			n.ucPingPong(t)
			n.ucPerftest(t)
		})
	}
}

func (n *byNumber) ucPingPong(t *testing.T) {
	for i, c := range [][]string{{"ib"}, {"roce", "-g", "0"}, {"roce", "-g", "0", "-e", "-s", "16384", "-n", "200"},
		{"roce", "-g", "0", "-s", "1"}} {
		if !n.share.has(i) {
			continue
		}
		t.Run("ibv_uc_pingpong/"+strings.Join(c, ""), func(t *testing.T) {
			r := n.run(t, c[0], "ibv_uc_pingpong", c[1:]...)
			for side, output := range map[string]string{"server": r.Server, "client": r.Client} {
				if !strings.Contains(output, " iters in ") {
					t.Errorf("%s:\n%s", side, output)
				}
			}
		})
	}
}

func (n *byNumber) ucPerftest(t *testing.T) {
	for i, program := range []string{"ib_write_bw", "ib_write_lat", "ib_send_lat"} {
		for j, transport := range []string{"ib", "roce"} {
			if !n.share.has(i + j) {
				continue
			}
			t.Run(program+"/"+transport, func(t *testing.T) {
				r := n.run(t, transport, program, slices.Concat([]string{"-F", "-c", "UC", "-n", "100"})...)
				rows, err := lab.ParsePerftest(r.Client)
				if err != nil || len(rows) != 1 || rows[0].Iterations < 100 {
					t.Errorf("%v, %+v", err, rows)
				}
			})
		}
	}
}
