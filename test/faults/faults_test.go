package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"urdma/test/bystander"
	"urdma/test/lab"
)

// long reports whether the long tests were requested.
var long = os.Getenv("URDMA_LONG") != ""

// patience is the longest wait for something that happens at once on a quiet machine.
const patience = lab.Patience

func TestMain(m *testing.M) {
	bystander.Main()
	program()
	os.Exit(m.Run())
}

// pair connects a checked pair: the server at a, the client at b, which may be the same. Unless the test ends it
// earlier, it must have no error at the end.
func pair(t *testing.T, a, b *lab.Node) *checked {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	p, err := bystander.New(ctx, a.Socket(), b.Socket(), a.Address+":0", uint64(time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	c := &checked{Pair: p, t: t, name: a.Name + "-" + b.Name}
	t.Cleanup(c.end)
	return c
}

// checked is a pair that belongs to a test.
type checked struct {
	*bystander.Pair
	t    *testing.T
	name string
	over bool
}

// advances fails the test if the pair makes no progress.
func (c *checked) advances(when string) {
	c.t.Helper()
	if c.Advances(3, patience) {
		return
	}
	select {
	case <-c.Ended():
		c.over = true
		defer c.Close()
		c.t.Fatalf("%s: the checked pair %s: %v", when, c.name, c.Err())
	default:
		c.t.Fatalf("%s: the checked pair %s stands still after %d rounds", when, c.name, c.Client.Rounds())
	}
}

// breaks waits for the pair's connection to end with an error, as it must if the peer is gone.
func (c *checked) breaks(limit time.Duration) {
	c.t.Helper()
	c.over = true
	defer c.Close()
	select {
	case <-c.Ended():
		if c.Err() == nil {
			c.t.Fatalf("the pair %s ended without an error", c.name)
		}
	case <-time.After(limit):
		c.t.Fatalf("the pair %s has no error after %v", c.name, limit)
	}
}

// end stops the pair, which must have no error.
func (c *checked) end() {
	if c.over {
		return
	}
	c.over = true
	defer c.Close()
	if c.t.Failed() {
		return
	}
	if err := c.Stop(); err != nil {
		c.t.Errorf("the checked pair %s: %v", c.name, err)
	}
	c.t.Logf("the checked pair %s: %d rounds, the longest took %v", c.name, c.Client.Rounds(), c.Client.Longest())
}

// connects checks that new connections work; the wire may take a moment.
func connects(t *testing.T, a, b *lab.Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	var err error
	for end := time.Now().Add(2 * patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var p *bystander.Pair
		if p, err = bystander.New(ctx, a.Socket(), b.Socket(), a.Address+":0", 1); err != nil {
			continue
		}
		moved := p.Advances(1, patience)
		err = p.Stop()
		p.Close()
		if moved && err == nil {
			return
		}
	}
	t.Fatalf("no new connection works: %v", err)
}

// running fails the test if a urdmad has ended.
func running(t *testing.T, ns ...*lab.Node) {
	t.Helper()
	for _, n := range ns {
		if !n.Daemon.Running() {
			t.Fatalf("urdmad of %s is not running:\n%s", n.Name, lab.Tail(n.Daemon.Output(), 60))
		}
	}
}

// awaits waits for a condition.
func awaits(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not after %v", what, limit)
		}
	}
}

// end starts this program again as one end of a checked pair, in its own process on the node.
func end(t *testing.T, n *lab.Node, role, address string) *lab.Process {
	t.Helper()
	// The test's program may be in a directory that only root may read.
	p, err := n.Start("env", bystander.Command(role, n.Socket(), address, 5), copied(t, n))
	if err != nil {
		t.Fatal(err)
	}
	awaits(t, role+" is ready: "+p.Output(), patience,
		func() bool { return strings.Contains(p.Output(), "ready") || !p.Running() })
	if !p.Running() {
		t.Fatalf("%s: %s", role, p.Output())
	}
	return p
}

// copied returns a copy of this program that every user can run.
func copied(t *testing.T, n *lab.Node) string {
	t.Helper()
	to := fmt.Sprintf("%s/faults.test", n.Directory())
	if _, err := os.Stat(to); err == nil {
		return to
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("install", "-m", "755", self, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return to
}
