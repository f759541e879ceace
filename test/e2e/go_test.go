package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/verbs"
)

// This file tests Debian's programs with package verbs as their peer, and Go programs on ports that only programs of
// their network namespace can name.

// goClient makes this program a Go program on a node.
func goClient(t *testing.T, n *lab.Node) *verbs.Client {
	t.Helper()
	c, err := verbs.Open(n.Socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

const (
	datagrams     = 10
	datagramBytes = 100
	datagramRoom  = verbs.GRHLen + datagramBytes
)

// listener posts receives for the peer's datagrams before the peer can know of them.
func listener(memory **verbs.MR) func(*verbs.Conn) error {
	return func(conn *verbs.Conn) (err error) {
		if *memory, err = conn.PD().AllocMemory((datagrams+1)*datagramRoom, verbs.LocalWrite); err != nil {
			return err
		}
		for i := range datagrams {
			if err := conn.PostRecv(&verbs.RecvWR{ID: uint64(i),
				SGE: []verbs.SGE{(*memory).SGE(i*datagramRoom, datagramRoom)}}); err != nil {
				return err
			}
		}
		return nil
	}
}

// hearAll receives all datagrams; the first one's sender must have sent each.
func hearAll(ctx context.Context, conn *verbs.Conn, memory *verbs.MR) (from verbs.Destination, err error) {
	for i := range datagrams {
		c, err := conn.Recv(ctx)
		if err != nil {
			return from, fmt.Errorf("datagram %d: %w", i, err)
		}
		sender, err := c.Sender(memory.Bytes()[int(c.ID)*datagramRoom:], verbs.UDPQKey)
		if err != nil || c.ByteLen != datagramRoom || i > 0 && sender != from {
			return from, fmt.Errorf("datagram %d of %d bytes from %+v, the first from %+v: %w", i, c.ByteLen, sender, from, err)
		}
		from = sender
	}
	return from, nil
}

// answerAll sends as udaddy does: with its queue pair's number, which is the only address that udaddy uses for its
// answers.
func answerAll(ctx context.Context, conn *verbs.Conn, memory *verbs.MR) error {
	for range datagrams {
		wr := verbs.SendWR{Op: verbs.OpSendWithImm, Flags: verbs.Signaled, Imm: conn.QPN(), To: conn.Peer(),
			SGE: []verbs.SGE{memory.SGE(datagrams*datagramRoom, datagramBytes)}}
		if err := conn.PostSend(&wr); err != nil {
			return err
		}
		var one [1]verbs.Completion
		if _, err := conn.SendCQ().Wait(ctx, one[:]); err != nil {
			return err
		}
		if err := one[0].Err(); err != nil {
			return err
		}
	}
	return nil
}

func udaddy(transport string, args ...string) []string {
	line := []string{"env", "URDMA_TRANSPORT=" + transport, "udaddy", "-c", "1", "-C", fmt.Sprint(datagrams), "-S",
		fmt.Sprint(datagramBytes)}
	return append(line, args...)
}

// finished waits until udaddy has ended successfully.
func finished(t *testing.T, p *lab.Process) {
	t.Helper()
	if err := p.Wait(lab.Patience); err != nil || !strings.Contains(p.Output(), "data transfers complete") ||
		!strings.Contains(p.Output(), "return status 0") {
		t.Errorf("%v:\n%s", err, p.Output())
	}
}

// TestGoDatagrams: package verbs finds udaddy's queue pair by rdma_cm and exchanges datagrams with it, and udaddy
// finds a queue pair of package verbs.
func TestGoDatagrams(t *testing.T) {
	need(t, "udaddy")
	for _, w := range []lab.Wire{lab.Loopback, lab.Memif} {
		a, b := labtest.Join(t, w, nil)
		for _, transport := range []string{"roce", "ib"} {
			t.Run(w.Name+"/asks/"+transport, func(t *testing.T) { goAsks(t, a, b, transport) })
			t.Run(w.Name+"/answers/"+transport, func(t *testing.T) { goAnswers(t, a, b, transport) })
		}
	}
}

func goAsks(t *testing.T, server, client *lab.Node, transport string) {
	ctx, stop := context.WithTimeout(context.Background(), lab.Patience)
	defer stop()
	p, err := lab.Pair{ServerNode: server, Server: udaddy(transport, "-b", server.Address)}.StartServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	var memory *verbs.MR
	conn, err := goClient(t, client).Dial(ctx, server.Address+":7174",
		&verbs.ConnOptions{QP: verbs.QPOptions{Type: verbs.UD}, Prepare: listener(&memory)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := answerAll(ctx, conn, memory); err != nil {
		t.Fatal(err)
	}
	if from, err := hearAll(ctx, conn, memory); err != nil || from != conn.Peer() {
		t.Errorf("heard %+v, the peer is %+v: %v", from, conn.Peer(), err)
	}
	finished(t, p)
}

func goAnswers(t *testing.T, server, client *lab.Node, transport string) {
	ctx, stop := context.WithTimeout(context.Background(), lab.Patience)
	defer stop()
	l, err := goClient(t, server).ListenDatagrams(server.Address + ":7174")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := client.Exec(udaddy(transport, "-s", server.Address)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	var memory *verbs.MR
	conn, err := l.Accept(ctx, &verbs.ConnOptions{Prepare: listener(&memory)})
	if err != nil {
		t.Fatalf("%v:\n%s", err, p.Output())
	}
	defer conn.Close()
	if from, err := hearAll(ctx, conn, memory); err != nil || from != conn.Peer() {
		t.Errorf("heard %+v, the peer is %+v: %v", from, conn.Peer(), err)
	}
	if err := answerAll(ctx, conn, memory); err != nil {
		t.Fatal(err)
	}
	finished(t, p)
}

// TestGoMulticast: messages of mckey to a group reach members of package verbs on both hosts, which have joined
// before it starts.
func TestGoMulticast(t *testing.T) {
	const group = "ff15::1:2:3"
	need(t, "mckey")
	a, b := labtest.Join(t, lab.Memif.V6(), nil)
	ctx, stop := context.WithTimeout(context.Background(), lab.Patience)
	defer stop()
	var members [2]*verbs.Conn
	var memories [2]*verbs.MR
	for i, n := range []*lab.Node{a, b} {
		var err error
		if members[i], err = goClient(t, n).JoinMulticast(ctx, group,
			&verbs.ConnOptions{Prepare: listener(&memories[i])}); err != nil {
			t.Fatal(err)
		}
	}
	p, err := b.Exec("env", "URDMA_TRANSPORT=roce", "mckey", "-m", group, "-b", b.Address, "-C", fmt.Sprint(datagrams),
		"-S", fmt.Sprint(datagramBytes), "-s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	for i, m := range members {
		if _, err := hearAll(ctx, m, memories[i]); err != nil {
			t.Errorf("member %d: %v\n%s", i, err, p.Output())
		}
	}
	if err := p.Wait(lab.Patience); err != nil {
		t.Errorf("%v:\n%s", err, p.Output())
	}
}

// goPing6 runs Go programs on both hosts, which dial and listen at IPv6 addresses in package net's notation.
func goPing6(t *testing.T, server, client *lab.Node) {
	built := filepath.Join(t.TempDir(), "ping")
	if out, err := exec.Command("go", "build", "-o", built, "urdma/examples/go/ping").CombinedOutput(); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	code, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	program := func(n *lab.Node) string { // the node's own user may run it there
		path := filepath.Join(n.Directory(), "ping")
		if err := os.WriteFile(path, code, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	address := "[" + server.Address + "]:7474"
	pass(t, lab.Pair{ServerNode: server, ClientNode: client,
		Server: []string{program(server), "-once", "-listen", address},
		Client: []string{program(client), "-n", "20", address}})
}
