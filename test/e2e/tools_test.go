package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"urdma/inspect"
	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestTools looks at a connection over the wire with the tools for administrators: peers, limits, changes as they
// happen, a reload; and ends the connection.
func TestTools(t *testing.T) {
	whole(t)
	need(t, "rping")
	l := labtest.New(t)
	a, b := labtest.JoinIn(t, l, lab.Memif, nil)
	changes := startCapture(t, l, b, "trace", "--changes", "--json", "-q")
	p := lab.Pair{ServerNode: a, Server: []string{"rping", "-s", "-a", a.Address, "-C", "10000000"}}
	server, err := p.StartServer()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	client, err := b.Exec("rping", "-c", "-a", a.Address, "-C", "10000000")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Kill()

	var peers []inspect.Peer
	await(t, "a peer with a round-trip time", func() (bool, string) {
		out := urdma(t, b, l, "show", "peer", "--json")
		return json.Unmarshal([]byte(out), &peers) == nil && len(peers) == 1 && peers[0].RTTNs > 0, out + client.Output()
	})
	if v := peers[0]; v.Address != a.Address || v.Protocol != inspect.ProtocolUDP || v.QPs != 1 || v.SilentNs == 0 ||
		v.PathMTU == 0 || v.Segments == 0 {
		t.Errorf("peer %+v", v)
	}
	var neighbours []inspect.Neighbour
	out := urdma(t, b, l, "show", "neighbour", "--json")
	if err := json.Unmarshal([]byte(out), &neighbours); err != nil || len(neighbours) != 1 ||
		neighbours[0].Address != a.Address || neighbours[0].MAC == "" || neighbours[0].State == "INCOMPLETE" {
		t.Errorf("%v, neighbours %s", err, out)
	}
	var limits []inspect.Limit
	out = urdma(t, b, l, "show", "limit", "--json", "--pid", fmt.Sprint(client.PID()))
	if err := json.Unmarshal([]byte(out), &limits); err != nil {
		t.Fatal(err)
	}
	pairs := 0
	for _, v := range limits {
		if v.PID != client.PID() {
			t.Errorf("a limit of another process: %+v", v)
		}
		if v.Name == "queue_pairs" && v.Used == 1 && v.Allowed > 1 {
			pairs++
		}
	}
	if pairs != 1 {
		t.Errorf("limits %s, expected one of queue_pairs, 1 used", out)
	}
	if out := urdma(t, b, l, "reload"); !strings.Contains(out, "nothing has changed") {
		t.Errorf("reload: %s", out)
	}

	qpn := strings.Fields(urdma(t, b, l, "show", "qp", "--columns", "qpn", "--pid", fmt.Sprint(client.PID())))[1]
	urdma(t, b, l, "end", "qp", qpn)
	await(t, "the client to end without its queue pair",
		func() (bool, string) { return !client.Running(), client.Output() })
	await(t, "the client to be gone in the trace", func() (bool, string) {
		return strings.Contains(changes.Output(), `"rping has gone"`), changes.Output()
	})
	changes.Signal(syscall.SIGINT)
	if err := changes.Wait(lab.Patience); err != nil {
		t.Errorf("changes: %v", err)
	}
	seen := map[string]bool{}
	for _, e := range tracedIn(t, changes.Output()) {
		seen[e.Kind+" "+e.What] = true
		if e.Kind == "SEND" || e.Kind == "API" || e.Kind == "PACKET" {
			t.Errorf("trace --changes shows %+v", e)
		}
	}
	for _, want := range []string{"CLIENT rping came", "STATE RTS", "CM RDMA_CM_EVENT_ESTABLISHED", "STATE ERR",
		"ASYNC IBV_EVENT_QP_FATAL"} {
		if !seen[want] {
			t.Errorf("trace --changes does not show %q:\n%s", want, changes.Output())
		}
	}
}
