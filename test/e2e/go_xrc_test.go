package e2e

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"urdma/test/lab"
	"urdma/test/lab/labtest"
	"urdma/verbs"
)

// TestGoXRC: rdma_xclient sends to a shared receive queue of package verbs, and package verbs to one of rdma_xserver.
// The server gives the queue's number when it accepts.
func TestGoXRC(t *testing.T) {
	need(t, "rdma_xserver")
	a, b := labtest.Join(t, lab.Loopback, nil)
	t.Run("rdma_xclient", func(t *testing.T) { goXServer(t, a, b) })
	t.Run("rdma_xserver", func(t *testing.T) { goXClient(t, a, b) })
}

// xrcPort and xrcMessage are the port number and the message (16 bytes) of these programs.
const (
	xrcPort    = ":7471"
	xrcMessage = 16
)

func endsWell(t *testing.T, p *lab.Process) {
	t.Helper()
	if err := p.Wait(lab.Patience); err != nil || !strings.Contains(p.Output(), "end 0") {
		t.Errorf("%v:\n%s", err, p.Output())
	}
}

// xrcQueue is a shared receive queue with one receive, in a domain of its own.
func xrcQueue(client *verbs.Client) (d *verbs.XRCDomain, cq *verbs.CQ, srq *verbs.SRQ, err error) {
	x, err := client.Devices()[0].Open()
	if err != nil {
		return nil, nil, nil, err
	}
	pd, err := x.AllocPD()
	channel, errChannel := x.CreateCompChannel()
	d, errDomain := x.OpenXRCDomain(nil, 0)
	if err := errors.Join(err, errChannel, errDomain); err != nil {
		return nil, nil, nil, err
	}
	memory, err := pd.AllocMemory(xrcMessage, verbs.LocalWrite)
	if err != nil {
		return nil, nil, nil, err
	}
	if cq, err = x.CreateCQ(1, channel); err != nil {
		return nil, nil, nil, err
	}
	if srq, err = pd.CreateSRQ(verbs.SRQOptions{XRC: d, CQ: cq}); err != nil {
		return nil, nil, nil, err
	}
	return d, cq, srq, srq.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{memory.SGE(0, xrcMessage)}})
}

func goXServer(t *testing.T, server, client *lab.Node) {
	ctx, stop := context.WithTimeout(context.Background(), lab.Patience)
	defer stop()
	c := goClient(t, server)
	domain, cq, srq, err := xrcQueue(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.Listen(server.Address + xrcPort)
	if err != nil {
		t.Fatal(err)
	}
	p, err := client.Exec("rdma_xclient", "-s", server.Address, "-c", "x")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	conn, err := l.Accept(ctx, &verbs.ConnOptions{QP: verbs.QPOptions{Type: verbs.XRCRecv, XRC: domain},
		PrivateData: binary.BigEndian.AppendUint32(nil, srq.SRQN())})
	if err != nil {
		t.Fatalf("%v:\n%s", err, p.Output())
	}
	defer conn.Close()
	var one [1]verbs.Completion
	if _, err := cq.Wait(ctx, one[:]); err != nil || one[0].Err() != nil || one[0].ByteLen != xrcMessage ||
		one[0].QPN != conn.QPN() {
		t.Errorf("completion %+v, %v:\n%s", one[0], err, p.Output())
	}
	endsWell(t, p)
}

func goXClient(t *testing.T, server, client *lab.Node) {
	ctx, stop := context.WithTimeout(context.Background(), lab.Patience)
	defer stop()
	p, err := lab.Pair{ServerNode: server, Server: []string{"rdma_xserver", "-c", "x"}}.StartServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	conn, err := goClient(t, client).Dial(ctx, server.Address+xrcPort,
		&verbs.ConnOptions{QP: verbs.QPOptions{Type: verbs.XRCSend}})
	if err != nil {
		t.Fatalf("%v:\n%s", err, p.Output())
	}
	defer conn.Close()
	if len(conn.PrivateData()) < 4 {
		t.Fatalf("private data % x, expected a queue's number", conn.PrivateData())
	}
	wr := verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, Inline: make([]byte, xrcMessage),
		SRQN: binary.BigEndian.Uint32(conn.PrivateData())}
	if err := conn.PostSend(&wr); err != nil {
		t.Fatal(err)
	}
	var one [1]verbs.Completion
	if _, err := conn.SendCQ().Wait(ctx, one[:]); err != nil || one[0].Err() != nil {
		t.Errorf("completion %+v, %v:\n%s", one[0], err, p.Output())
	}
	if err := conn.Disconnect(); err != nil {
		t.Error(err)
	}
	endsWell(t, p)
}
