package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/test/programtest"
)

// freeAddress returns a TCP address of this machine that is free now.
func freeAddress(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", programtest.FreePort(t))
}

// urdma runs the command on a node and returns its output.
func urdma(t *testing.T, n *lab.Node, l *lab.Lab, args ...string) string {
	t.Helper()
	p, err := n.Start(append([]string{l.Program("urdma")}, append(args, "--socket", n.Socket())...)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(lab.Patience); err != nil {
		t.Fatalf("urdma %v: %v\n%s", args, err, p.Output())
	}
	return p.Output()
}

// scrape returns the value of a metric; the name includes its labels.
func scrape(t *testing.T, address, metric string) float64 {
	t.Helper()
	r, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("metrics: %s, %v\n%s", r.Status, err, text)
	}
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(metric) + ` (\S+)$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no %s among the metrics", metric)
	}
	v, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestLookInside looks at rping while it runs, with tables, JSON, metrics and plain lines of top, and at the
// remaining objects after it.
func TestLookInside(t *testing.T) {
	whole(t)
	need(t, "rping")
	address := freeAddress(t)
	l := labtest.New(t)
	n, _, err := l.Join(lab.Loopback.WithWorkers(1),
		lab.Config{"metrics_address": address, "stats_timer_interval": 200, "log_level": "debug"})
	if err != nil {
		t.Fatal(err)
	}
	pair := lab.Pair{ServerNode: n, ClientNode: n,
		Server: []string{"rping", "-s", "-a", n.Address, "-p", "7471", "-S", "1000"}}
	server, err := pair.StartServer()
	if err != nil {
		t.Fatal(err)
	}
	client, err := n.Exec("rping", "-c", "-a", n.Address, "-p", "7471", "-S", "1000", "-C", "10000000")
	if err != nil {
		t.Fatal(err)
	}
	await(t, "rping to run", func() (bool, string) {
		return scrape(t, address, `urdma_messages_total{direction="in"}`) >= 100, client.Output() + server.Output()
	})
	lookAtObjects(t, l, n, server.PID(), client.PID())
	if v := scrape(t, address, `urdma_queue_pairs{state="RTS"}`); v != 2 {
		t.Errorf("metrics count %v queue pairs in RTS, expected 2", v)
	}
	if v := scrape(t, address, "urdma_host_messages_total"); v < 100 {
		t.Errorf("metrics count %v messages within the host", v)
	}
	busy := regexp.MustCompile(`qp [0-9a-f]{6} pid \d+ rping out \S+iB/s`)
	await(t, "a busy queue pair in top", func() (bool, string) {
		out := urdma(t, n, l, "top", "--count", "1", "--interval", "300ms")
		return busy.MatchString(out), out
	})
	before := scrape(t, address, `urdma_messages_total{direction="in"}`)
	client.Kill()
	server.Kill()
	await(t, "the end of clients that were killed",
		func() (bool, string) { return scrape(t, address, "urdma_clients") == 0, "" })
	if after := scrape(t, address, `urdma_messages_total{direction="in"}`); after < before {
		t.Errorf("the count of messages fell from %v to %v when the queue pairs went", before, after)
	}
	await(t, "statistics in the log", func() (bool, string) {
		out := n.Daemon.Output()
		return strings.Contains(out, `msg="poll loop statistics"`), out
	})
	if err := n.StopDaemon(); err != nil {
		t.Error(err)
	}
}

func lookAtObjects(t *testing.T, l *lab.Lab, n *lab.Node, server, client int) {
	t.Helper()
	var pairs []struct {
		PID          int
		State, Path  string
		MessagesSent uint64 `json:"messages_sent"`
	}
	if err := json.Unmarshal([]byte(urdma(t, n, l, "show", "qp", "--json")), &pairs); err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, q := range pairs {
		seen[q.PID] = true
		if q.State != "RTS" || q.Path != "host" || q.MessagesSent == 0 {
			t.Errorf("queue pair: %+v", q)
		}
	}
	if len(pairs) != 2 || !seen[server] || !seen[client] {
		t.Errorf("queue pairs of %v, expected those of %d and %d", seen, server, client)
	}
	for object, want := range map[string]string{
		"port": "urdma0", "client": fmt.Sprintf("rping -c -a %s", n.Address), "pd": "urdma0", "mr": "lwr--", "cq": "OK",
		"qp": "RTS", "connection": "connected", "listener": n.Address + ":7471",
	} {
		if out := urdma(t, n, l, "show", object); !strings.Contains(out, want) {
			t.Errorf("show %s has no %q:\n%s", object, want, out)
		}
	}
	if out := urdma(t, n, l, "status"); !strings.Contains(out, "2: 2 RTS") || !strings.Contains(out, "rping[") {
		t.Errorf("status:\n%s", out)
	}
}
