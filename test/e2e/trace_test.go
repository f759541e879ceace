package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// traced is an event as urdma trace --json prints it.
type traced struct {
	Time               time.Time
	Kind, What, Status string
	PID, QPN           uint32
	WRID               uint64 `json:"wr_id"`
	Bytes              int
}

// TestTrace: each form of a trace has everything that one rping does: the calls of both processes, states, events of
// rdma_cm, each send with its completion, and a bookmark.
func TestTrace(t *testing.T) {
	whole(t)
	l := labtest.New(t)
	n, _ := labtest.JoinIn(t, l, lab.Loopback.WithWorkers(1), nil) // of several, messages are placed in segments
	dir := outputs(t, n)
	pcap, page := filepath.Join(dir, "x.pcapng"), filepath.Join(dir, "x.html")
	all := startCapture(t, l, n, "trace", "--json", "-q")
	writers := []*lab.Process{all, startCapture(t, l, n, "trace", "-o", pcap),
		startCapture(t, l, n, "trace", "-o", page, "-q"),
		startCapture(t, l, n, "trace", "--json", "--kind", "SEND,comp", "-q")}
	argv := []string{"rping", "-a", n.Address, "-p", "7471", "-C", "3", "-S", "5000", "-V"}
	pass(t, lab.Pair{ServerNode: n, ClientNode: n, Server: append(argv, "-s"), Client: append(argv, "-c")})
	if out, err := n.Urdma("trace", "--socket", n.Socket(), "--mark", "that was rping"); err != nil {
		t.Fatal(err, out)
	}
	markByProgram(t, n)
	for _, p := range writers {
		p.Signal(syscall.SIGINT)
		if err := p.Wait(lab.Patience); err != nil {
			t.Fatalf("%v\n%s", err, p.Output())
		}
	}
	if out := writers[1].Output(); !strings.Contains(out, "worker spent ") || strings.Contains(out, "worker spent 0s") {
		t.Errorf("the closing line does not say what the trace took:\n%s", out)
	}
	events := tracedIn(t, all.Output())
	count := map[string]int{}
	open := map[string]int{} // sends without their completion
	for _, e := range events {
		count[e.Kind+" "+e.What]++
		work := fmt.Sprint(e.PID, e.QPN, e.WRID)
		switch {
		case e.Kind == "SEND":
			open[work]++
		case e.Kind == "COMP" && !strings.Contains(e.What, "receive"):
			open[work]--
		}
	}
	for what, want := range map[string]int{"API rdma_connect": 1, "API rdma_accept": 1, "API ibv_create_qp": 2,
		"CM RDMA_CM_EVENT_ESTABLISHED": 2, "CM RDMA_CM_EVENT_DISCONNECTED": 2,
		"STATE RTS": 2, "PLACE message placed": 12, "PLACE RDMA Read placed": 3, "PLACE RDMA Write placed": 3,
		"SEND SEND": 12, "RCV a message takes a receive": 12, "SEND RDMA_READ": 3, "SEND RDMA_WRITE": 3, "COMP RDMA Read": 3,
		"BOOKMARK that was rping": 1, "BOOKMARK from a program": 1} {
		if count[what] != want {
			t.Errorf("%d of %q, expected %d", count[what], what, want)
		}
	}
	for work, n := range open {
		if n != 0 {
			t.Errorf("work request %s was posted %d times more than it completed", work, n)
		}
	}
	comments := 0
	for _, p := range packets(t, pcap) {
		comments += strings.Count(p.comment, "RDMA_READ, 5000 bytes")
	}
	if comments != 3 {
		t.Errorf("%d Reads are in the comments of packets, expected 3", comments)
	}
	checkPage(t, page)
	for _, e := range tracedIn(t, writers[3].Output()) {
		if e.Kind != "SEND" && e.Kind != "COMP" {
			t.Errorf("--kind SEND,comp shows %+v", e)
		}
	}
}

// markByProgram lets a program that is not linked with the library set a bookmark.
func markByProgram(t *testing.T, n *lab.Node) {
	t.Helper()
	p, err := n.Exec("python3", "-c", "import ctypes; exit(ctypes.CDLL(None).urdma_mark(b'from a program'))")
	if err == nil {
		err = p.Wait(lab.Patience)
	}
	if err != nil {
		t.Fatal(err, p.Output())
	}
}

func tracedIn(t *testing.T, out string) (events []traced) {
	t.Helper()
	for line := range strings.Lines(out) {
		var e traced
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

// click selects the first posted RDMA Write and leaves only what the page shows about it.
const click = `<script>
$('filter').value = 'rdma_write'
$('filter').oninput()
document.querySelector('.event.SEND').dispatchEvent(new MouseEvent('click', {bubbles: true}))
document.body.replaceChildren(...document.querySelectorAll('.lane, .event.SEND, #fields, #count'))
</script>`

// checkPage opens a page in a browser: it must have lanes for both programs, their queue pairs and urdmad, and a
// click on an event must show its fields.
func checkPage(t *testing.T, file string) {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Log("NOT TESTED: the page of urdma trace, there is no chromium")
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	clicked := filepath.Join(t.TempDir(), "clicked.html")
	if err := os.WriteFile(clicked, append(text, click...), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--virtual-time-budget=1000", "--dump-dom", "file://"+clicked)
	dom, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(dom), "<body>")
	for what, want := range map[string]int{`data-lane="program `: 3 /* markByProgram's too */, `data-lane="qp `: 2,
		`data-lane="urdmad `: 1, `>rping</text>`: 2, `class="event SEND`: 3,
		"<td>SEND</td>": 1, "<td>RDMA_WRITE</td>": 1, "<td>5000</td>": 1, "<th>wr_id</th>": 1} {
		if got := strings.Count(shown, what); got != want {
			t.Errorf("the page has %d of %s, expected %d", got, what, want)
		}
	}
	if t.Failed() {
		t.Log(shown)
	}
}
