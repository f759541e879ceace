package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"urdma/test/bystander"
	"urdma/test/lab"
	"urdma/test/lab/labtest"
)

// joinRelayed sets up two hosts with a relay between them, or skips the test.
func joinRelayed(t *testing.T, fate ...string) *lab.Relayed {
	t.Helper()
	l := labtest.New(t)
	if err := l.Can(lab.UDP); err != nil {
		t.Skip(err)
	}
	r, err := l.JoinRelayed(nil, fate...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// relayedPing moves messages of some tens of packets with rping, which checks the bytes.
func relayedPing(t *testing.T, r *lab.Relayed, rounds int) {
	t.Helper()
	need(t, "rping")
	args := []string{"-V", "-v", "-S", "30000", "-C", fmt.Sprint(rounds)}
	for _, ends := range [][2]*lab.Node{{r.A, r.B}, {r.B, r.A}} {
		got := pass(t, lab.Pair{ServerNode: ends[0], ClientNode: ends[1], Server: append([]string{"rping", "-s"}, args...),
			Client: append([]string{"rping", "-c", "-a", ends[0].Address}, args...)})
		if n := strings.Count(got.Client, "ping data: rdma-ping-"); n != rounds {
			t.Errorf("%d pings of %d:\n%s", n, rounds, lab.Tail(got.Client, 5))
		}
	}
}

// checkedRounds moves Sends, Writes and Reads of up to 64 KiB and checks every byte.
func checkedRounds(t *testing.T, r *lab.Relayed, rounds int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*lab.Patience)
	defer cancel()
	const port = ":7801"
	server, err := bystander.Serve(r.A.Socket(), "0.0.0.0"+port, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	served := make(chan error, 1)
	go func() {
		err := server.Accept(ctx)
		if err == nil {
			err = server.Run(ctx)
		}
		served <- err
	}()
	client, err := bystander.Dial(ctx, r.B.Socket(), r.A.Address+port, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	stop := make(chan struct{})
	worked := make(chan error, 1)
	go func() { worked <- client.Run(ctx, stop) }()
	for client.Rounds() < rounds && ctx.Err() == nil && len(worked) == 0 {
		time.Sleep(time.Millisecond)
	}
	close(stop)
	if err := <-worked; err != nil {
		t.Errorf("after %d rounds: %v", client.Rounds(), err)
	}
	if err := <-served; err != nil {
		t.Errorf("the server, after %d rounds: %v", client.Rounds(), err)
	}
}

// TestLossyPath: programs work and bytes are right on a path between real sockets that loses, repeats and reorders
// datagrams. (Over TCP the kernel repairs that, and our relay does not carry TCP.)
func TestLossyPath(t *testing.T) {
	for _, loss := range []string{"0.01", "0.05"} {
		t.Run("loss="+loss, func(t *testing.T) {
			r := joinRelayed(t, "-loss", loss, "-duplicate", "0.01", "-reorder", "0.01", "-seed", "7")
			relayedPing(t, r, 20)
			checkedRounds(t, r, 20)
			for _, program := range lab.Perftest {
				need(t, program)
				t.Run(program, func(t *testing.T) {
					got := pass(t, lab.PerftestPair(r.A, r.B, program, "-n", "100", "-s", "65536"))
					if rows, err := lab.ParsePerftest(got.Client); err != nil || rows[0].Bytes != 65536 {
						t.Errorf("%v:\n%s", err, got.Client)
					}
				})
			}
			c, err := r.Stop()
			if err != nil || c.Lost == 0 || c.Duplicated == 0 || c.Late == 0 || c.Strangers != 0 {
				t.Errorf("%v; the relay did %+v", err, c)
			}
		})
	}
}

// TestSpoiledBatches: if only the first of several datagrams that leave in one send arrives, urdmads notice that and
// send one by one.
func TestSpoiledBatches(t *testing.T) {
	whole(t)
	r := joinRelayed(t, "-first-only")
	relayedPing(t, r, 20)
	checkedRounds(t, r, 20)
	c, err := r.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if c.Joined == 0 {
		t.Skipf("nothing came joined: this kernel or network cuts before, %+v", c)
	}
	if c.Spoiled == 0 {
		t.Errorf("nothing was spoiled: %+v", c)
	}
	for _, n := range []*lab.Node{r.A, r.B} {
		if !strings.Contains(n.Daemon.Output(), "one by one to this peer") {
			t.Errorf("urdmad of %s does not say that it sends one by one:\n%s", n.Name, lab.Tail(n.Daemon.Output(), 10))
		}
		status, err := n.Urdma("status", "--verbose")
		if err != nil || !strings.Contains(status, "to 1 peers that lose all but the first") {
			t.Errorf("%v; urdma status of %s:\n%s", err, n.Name, status)
		}
	}
}
