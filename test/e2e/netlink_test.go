package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// rdma runs iproute2's rdma and looks for regular expressions in what it says.
func rdma(t *testing.T, n *lab.Node, transport, line string, want ...string) string {
	t.Helper()
	argv := append([]string{"env", "URDMA_TRANSPORT=" + transport, "rdma"}, strings.Fields(line)...)
	out, err := n.Run(lab.Patience, argv...)
	if err != nil {
		t.Errorf("rdma %s: %v\n%s", line, err, out)
	}
	for _, w := range want {
		if !regexp.MustCompile(w).MatchString(out) {
			t.Errorf("rdma %s doesn't say %q:\n%s", line, w, out)
		}
	}
	return out
}

// TestNetlink runs iproute2's rdma, unmodified, while a connection is open.
func TestNetlink(t *testing.T) {
	whole(t)
	need(t, "rdma")
	for transport, link := range map[string]string{"iwarp": `link urdma0/1 state ACTIVE physical_state LINK_UP netdev urdma0`,
		"roce": `link urdma0/1 state ACTIVE physical_state LINK_UP netdev urdma0`,
		"ib":   `link urdma0/1 subnet_prefix fe80:0000:0000:0000 lid \d+ sm_lid \d+ lmc 0 state ACTIVE physical_state LINK_UP`} {
		t.Run(transport, func(t *testing.T) {
			a, b := labtest.Join(t, lab.Memif, lab.Config{"transport": transport})
			rdma(t, a, transport, "link", link)
			rdma(t, a, transport, "dev", `0: urdma0: node_type \w+ fw [0-9.]+ node_guid [0-9a-f:]{19} `)
			rdma(t, a, transport, "system", "netns shared copy-on-fork on")
			if out := rdma(t, a, transport, "res show qp"); out != "" {
				t.Errorf("queue pairs before there are any: %s", out)
			}
			server, err := a.Exec("rping", "-s", "-a", a.Address)
			if err != nil {
				t.Fatal(err)
			}
			defer server.Kill()
			await(t, "the listener", func() (bool, string) {
				out := rdma(t, a, transport, "res show cm_id")
				return strings.Contains(out, "state LISTEN"), out
			})
			client, err := b.Exec("rping", "-c", "-a", a.Address, "-C", "1000000")
			if err != nil {
				t.Fatal(err)
			}
			defer client.Kill()
			await(t, "the connection", func() (bool, string) {
				out := rdma(t, a, transport, "res show qp")
				return strings.Contains(out, "state RTS"), out
			})
			rdma(t, a, transport, "res show qp", `link urdma0/1 lqpn \d+ type RC state RTS sq-psn 0 pdn \d+ pid \d+ comm rping`)
			rdma(t, a, transport, "res show cm_id", "state LISTEN ps TCP pid .* src-addr "+a.Address+":7174",
				"qp-type RC state CONNECT ps TCP pid .* dst-addr "+b.Address)
			rdma(t, a, transport, "res show mr", `mrlen 64 pdn \d+ pid \d+ comm rping`)
			rdma(t, a, transport, "res show cq", `cqe \d+ users 2 pid`)
			rdma(t, a, transport, "res", `qp 1 cm_id 2 mr \d srq 0`)
			rdma(t, a, transport, "statistic", `link urdma0/1 rx_bytes \d+ rx_dropped \d+ tx_bytes \d+ tx_dropped \d+`)
			var list []struct {
				Name string `json:"ifname"`
				QPN  uint32 `json:"lqpn"`
			}
			if err := json.Unmarshal([]byte(rdma(t, a, transport, "-j res show qp")), &list); err != nil || len(list) != 1 ||
				list[0].Name != "urdma0" || list[0].QPN == 0 {
				t.Errorf("as JSON: %v %v", err, list)
			}
		})
	}
	t.Run("two ports", func(t *testing.T) {
		a, _ := labtest.Join(t, lab.Memif, lab.Config{"transport": "ib"})
		twoPorts(t, a)
		rdma(t, a, "ib", "link", "link hca0/1 .* state ACTIVE", "link hca0/2 ")
		if out, err := a.Run(lab.Patience, "rdma", "dev", "set", "hca0", "name", "other"); err == nil ||
			!strings.Contains(out, "not supported") {
			t.Errorf("a device got another name: %v %s", err, out)
		}
	})
}
