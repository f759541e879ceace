package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/verbs"
)

// TestExplain: a program whose peer does not answer prints the explanation when it happens. urdma explain prints it
// afterwards, even if the program has ended; the flight recorder has the program's requests and events.
func TestExplain(t *testing.T) {
	whole(t)
	l := labtest.New(t)
	n, _ := labtest.JoinIn(t, l, lab.Loopback, nil)
	p, err := n.Start(l.Program("urdma"), "exec", "--socket", n.Socket(), "--explain", "--", "rping", "-c", "-a",
		n.Address, "-p", "7499", "-C", "1")
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
	if err != nil || json.Unmarshal([]byte(out), &list) != nil || len(list) != 1 || list[0].PID == 0 ||
		list[0].Number != "0x0585" {
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
	if out, err := n.Urdma("explain", "--socket", n.Socket(), "--pid", "1"); err != nil ||
		!strings.Contains(out, "nothing of process 1 has failed") {
		t.Errorf("explain --pid 1: %v\n%s", err, out)
	}
	if out, err := n.Urdma("explain", "0x0102"); err != nil || !strings.Contains(out, "IBV_ACCESS_REMOTE_WRITE") {
		t.Errorf("explain 0x0102: %v\n%s", err, out)
	}
}

// TestExplainNoRoute: rping with --explain and urdma ping give the same cause for an address that no port reaches.
func TestExplainNoRoute(t *testing.T) {
	whole(t)
	n, _ := labtest.Join(t, lab.Loopback, nil)
	for to, want := range map[string]string{
		"198.18.0.222": "nobody has 198.18.0.222: its network is that of the loopback port",
		"203.0.113.9":  "no route to 203.0.113.9: urdmad has urdma0",
	} {
		for _, command := range [][]string{{"ping", "--socket", n.Socket(), to},
			{"exec", "--socket", n.Socket(), "--explain", "--", "rping", "-c", "-a", to}} {
			if out, err := n.Urdma(command...); err == nil || !strings.Contains(out, want) {
				t.Errorf("%v says %q, expected %q", command, out, want)
			}
		}
	}
}

// TestWhyAQueuePairFailed: after a local protection error urdmad's log and urdma show qp name the reason, and the
// queue pair's number in the same form.
func TestWhyAQueuePairFailed(t *testing.T) {
	whole(t)
	n, _ := labtest.Join(t, lab.Loopback, nil)
	client := goClient(t, n)
	ctx, stop := context.WithTimeout(context.Background(), lab.Patience)
	defer stop()
	l, err := client.Listen(n.Address + ":7300")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Next(ctx)
		if err == nil {
			_, err = r.Accept(ctx, nil)
		}
		accepted <- err
	}()
	c, err := client.Dial(ctx, n.Address+":7300", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	memory, err := c.PD().AllocMemory(64, verbs.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	sge := memory.SGE(0, 64)
	sge.LKey = 7 // no region has this key
	if err := c.PostSend(&verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, SGE: []verbs.SGE{sge}}); err != nil {
		t.Fatal(err)
	}
	var one [1]verbs.Completion
	if _, err := c.SendCQ().Wait(ctx, one[:]); err != nil || one[0].Err() == nil {
		t.Fatalf("%v, %+v", err, one[0])
	}
	number, reason := fmt.Sprintf("%06x", c.QPN()), fmt.Sprintf("0x%04x", one[0].VendorErr)
	row := number + " ERR " + reason
	if out, err := n.Urdma("show", "qp", "--columns", "qpn,state,error"); err != nil ||
		!strings.Contains(strings.Join(strings.Fields(out), " "), row) {
		t.Errorf("show qp has no %q: %v\n%s", row, err, out)
	}
	line := `msg="queue pair fails" qpn=` + number
	await(t, "the log to have "+line+" and "+reason, func() (bool, string) {
		said := n.Daemon.Output()
		return strings.Contains(said, line) && strings.Contains(said, "reason="+reason), said
	})
}
