package verbs_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"syscall"
	"testing"

	"urdma/verbs"
)

// ExampleXRCDomain serves one client, which sends to a shared receive queue in the server's XRC domain. The
// server sends the queue's number when it accepts. Other programs on the server could pass the client their
// numbers, and the client would reach them through the same connection. The client may be a program on
// another host.
func ExampleXRCDomain() {
	client, err := verbs.Open("")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	pool, err := newXRCServer(client.Devices()[0])
	if err != nil {
		log.Fatal(err)
	}
	l, err := client.Listen(":0")
	if err != nil {
		log.Fatal(err)
	}
	server, sent := fmt.Sprintf("localhost:%d", l.Addr().Port()), make(chan error)
	go func() { sent <- sendXRC(context.Background(), client, server, "hello, queue") }()
	text, err := pool.serve(context.Background(), l)
	if err != nil {
		log.Fatal(err)
	}
	if err := <-sent; err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
}

// xrcServer is an XRC domain with a queue and receive memory.
type xrcServer struct {
	domain *verbs.XRCDomain
	cq     *verbs.CQ
	srq    *verbs.SRQ
	memory *verbs.MR
}

func newXRCServer(device *verbs.Device) (s *xrcServer, err error) {
	s = &xrcServer{}
	x, err := device.Open()
	if err != nil {
		return nil, err
	}
	pd, err := x.AllocPD()
	if err != nil {
		return nil, err
	}
	channel, err := x.CreateCompChannel()
	if err != nil {
		return nil, err
	}
	if s.domain, err = x.OpenXRCDomain(nil, syscall.O_CREAT); err != nil { // with a file, other programs could share it
		return nil, err
	}
	if s.cq, err = x.CreateCQ(16, channel); err != nil {
		return nil, err
	}
	if s.srq, err = pd.CreateSRQ(verbs.SRQOptions{RecvWR: 16, XRC: s.domain, CQ: s.cq}); err != nil {
		return nil, err
	}
	if s.memory, err = pd.AllocMemory(4096, verbs.LocalWrite); err != nil {
		return nil, err
	}
	return s, s.srq.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{s.memory.SGE(0, 4096)}})
}

// serve accepts a connection and returns the first message.
func (s *xrcServer) serve(ctx context.Context, l *verbs.Listener) (string, error) {
	conn, err := l.Accept(ctx, &verbs.ConnOptions{QP: verbs.QPOptions{Type: verbs.XRCRecv, XRC: s.domain},
		PrivateData: binary.BigEndian.AppendUint32(nil, s.srq.SRQN())})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	var one [1]verbs.Completion
	if _, err := s.cq.Wait(ctx, one[:]); err != nil {
		return "", err
	}
	return string(s.memory.Bytes()[:one[0].ByteLen]), one[0].Err()
}

// sendXRC sends a message to the queue that the server names.
func sendXRC(ctx context.Context, client *verbs.Client, address, text string) error {
	conn, err := client.Dial(ctx, address, &verbs.ConnOptions{QP: verbs.QPOptions{Type: verbs.XRCSend}})
	if err != nil {
		return err
	}
	defer conn.Close()
	srqn := binary.BigEndian.Uint32(conn.PrivateData())
	if err := conn.PostSend(&verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled, Inline: []byte(text),
		SRQN: srqn}); err != nil {
		return err
	}
	var one [1]verbs.Completion
	if _, err := conn.SendCQ().Wait(ctx, one[:]); err != nil {
		return err
	}
	return one[0].Err()
}

// TestXRCDial runs the example's two programs, and tries connections that are not possible.
func TestXRCDial(t *testing.T) {
	d := startDaemon(t)
	server, ctx := d.open(), patience(t)
	s := must(newXRCServer(server.Devices()[0]))(t)
	l := must(server.Listen(":0"))(t)
	address := fmt.Sprintf("198.18.0.1:%d", l.Addr().Port())
	sent := make(chan error, 1)
	go func() { sent <- sendXRC(ctx, d.open(), address, "hello, queue") }()
	if text := must(s.serve(ctx, l))(t); text != "hello, queue" {
		t.Errorf("heard %q", text)
	}
	ok(t, <-sent)
	ok(t, errors.Join(s.srq.Close(), s.domain.Close()))
	go func() {
		_, err := l.Accept(ctx, &verbs.ConnOptions{QP: verbs.QPOptions{Type: verbs.XRCRecv}})
		sent <- err
	}()
	if _, err := d.open().Dial(ctx, address, nil); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialing who has no domain: %v", err)
	}
	if err := <-sent; !errors.Is(err, syscall.EINVAL) {
		t.Errorf("accepting without a domain: %v", err)
	}
}
