package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// TestExplain: a program that nobody answers is told why as it happens, and whoever asks
// urdmad afterwards too, though the program has ended; the flight recorder has what it did.
func TestExplain(t *testing.T) {
	l := labtest.New(t)
	n, _ := labtest.JoinIn(t, l, lab.Loopback, nil)
	p, err := n.Start(l.Program("urdma"), "exec", "--socket", n.Socket(), "--explain", "--", "rping", "-c", "-a", n.Address, "-p", "7499", "-C", "1")
	if err != nil {
		t.Fatal(err)
	}
	if p.Wait(lab.Patience) == nil {
		t.Fatalf("rping reached nobody:\n%s", p.Output())
	}
	for _, want := range []string{"0x0585", "nobody listens", "change: start the server first", n.Address + ":7499"} {
		if !strings.Contains(p.Output(), want) {
			t.Errorf("rping's standard error has no %q:\n%s", want, p.Output())
		}
	}
	out, err := n.Urdma("explain", "--socket", n.Socket(), "--json")
	var list []struct {
		PID          int
		Number, Text string
	}
	if err != nil || json.Unmarshal([]byte(out), &list) != nil || len(list) != 1 || list[0].PID == 0 || list[0].Number != "0x0585" {
		t.Fatalf("explain --json: %v\n%s", err, out)
	}
	dump, err := n.Urdma("trace", "--socket", n.Socket(), "--dump")
	if err != nil {
		t.Fatal(err, dump)
	}
	for _, want := range []string{"rdma_connect", "RDMA_CM_EVENT_REJECTED", "0x0585"} {
		if !strings.Contains(dump, want) {
			t.Errorf("the flight recorder has no %q:\n%s", want, dump)
		}
	}
	if out, err := n.Urdma("explain", "0x0102"); err != nil || !strings.Contains(out, "IBV_ACCESS_REMOTE_WRITE") {
		t.Errorf("explain 0x0102: %v\n%s", err, out)
	}
}
