package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"syscall"
	"testing"

	"urdma/verbs"
)

// ExampleClient_ListenDatagrams accepts requests for a queue pair that receives datagrams, and answers each
// datagram with the same text. The other side requests such a queue pair and sends it datagrams; lost ones
// are not sent again.
func ExampleClient_ListenDatagrams() {
	client, err := verbs.Open("")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	l, err := client.ListenDatagrams(":0")
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- echo(context.Background(), l, 2) }()
	server := fmt.Sprintf("localhost:%d", l.Addr().Port())
	answers, err := say(context.Background(), client, server, "hello", "again")
	if err != nil {
		log.Fatal(err)
	}
	if err := <-served; err != nil {
		log.Fatal(err)
	}
	fmt.Println(answers)
}

// echo accepts one request and answers so many datagrams.
func echo(ctx context.Context, l *verbs.Listener, count int) error {
	var memory *verbs.MR
	post := func(conn *verbs.Conn) error {
		return conn.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{memory.SGE(0, verbs.GRHLen+64)}})
	}
	conn, err := l.Accept(ctx, &verbs.ConnOptions{Prepare: func(conn *verbs.Conn) (err error) {
		if memory, err = conn.PD().AllocMemory(4096, verbs.LocalWrite); err != nil {
			return err
		}
		return post(conn) // before the other side knows the queue pair
	}})
	if err != nil {
		return err
	}
	defer conn.Close()
	for range count {
		c, err := conn.Recv(ctx)
		if err != nil {
			return err
		}
		text := append([]byte(nil), memory.Bytes()[verbs.GRHLen:c.ByteLen]...)
		if err := post(conn); err != nil {
			return err
		}
		// sends to conn.Peer; c.Sender would be the sender of this one
		if err := conn.SendBytes(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// say sends texts, each after the answer to the one before.
func say(ctx context.Context, client *verbs.Client, address string, texts ...string) (answers []string, err error) {
	conn, err := client.Dial(ctx, address, &verbs.ConnOptions{QP: verbs.QPOptions{Type: verbs.UD}})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	memory, err := conn.PD().AllocMemory(4096, verbs.LocalWrite)
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		if err := conn.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{memory.SGE(0, verbs.GRHLen+64)}}); err != nil {
			return nil, err
		}
		if err := conn.SendBytes(ctx, []byte(text)); err != nil {
			return nil, err
		}
		c, err := conn.Recv(ctx)
		if err != nil {
			return nil, err
		}
		answers = append(answers, string(memory.Bytes()[verbs.GRHLen:c.ByteLen]))
	}
	return answers, nil
}

// TestDatagramService runs the example's two programs, with several clients.
func TestDatagramService(t *testing.T) {
	d := startDaemon(t)
	server, ctx := d.open(), patience(t)
	l := must(server.ListenDatagrams(":0"))(t)
	echoed := make(chan error, 1)
	for _, host := range []string{"198.18.0.1", "127.0.0.1"} {
		go func() { echoed <- echo(ctx, l, 3) }()
		answers := must(say(ctx, d.open(), fmt.Sprintf("%s:%d", host, l.Addr().Port()), "one", "two", ""))(t)
		if fmt.Sprint(answers) != "[one two ]" {
			t.Errorf("by %s: answers %q", host, answers)
		}
		ok(t, <-echoed)
	}
}

// TestDatagramRequest: each side gets the other's queue pair and private data; the error is reported if a
// request is rejected or nobody listens for datagrams.
func TestDatagramRequest(t *testing.T) {
	d := startDaemon(t)
	server, client, ctx := d.open(), d.open(), patience(t)
	l, plain := must(server.ListenDatagrams("198.18.0.1:0"))(t), must(server.Listen(":0"))(t)
	type result struct {
		conn *verbs.Conn
		err  error
	}
	dial := func(to netip.AddrPort, kind verbs.QPType) chan result {
		dialed := make(chan result, 1)
		go func() {
			conn, err := client.Dial(ctx, fmt.Sprintf("198.18.0.1:%d", to.Port()),
				&verbs.ConnOptions{QP: verbs.QPOptions{Type: kind}, PrivateData: []byte("I am the client")})
			dialed <- result{conn, err}
		}()
		return dialed
	}
	dialing := dial(l.Addr(), verbs.UD)
	r := must(l.Next(ctx))(t)
	if string(r.PrivateData) != "I am the client" {
		t.Errorf("a request with private data %q", r.PrivateData)
	}
	accepted := must(r.Accept(ctx, &verbs.ConnOptions{PrivateData: []byte("I am the server")}))(t)
	got := <-dialing
	dialed := must(got.conn, got.err)(t)
	if string(dialed.PrivateData()) != "I am the server" || dialed.Err() != nil {
		t.Errorf("private data %q, error %v", dialed.PrivateData(), dialed.Err())
	}
	for _, two := range [][2]*verbs.Conn{{dialed, accepted}, {accepted, dialed}} {
		if want := (verbs.Destination{Number: two[1].Number(), QKey: verbs.UDPQKey}); two[0].Peer() != want ||
			two[0].LocalAddr() != two[1].RemoteAddr() {
			t.Errorf("the peer of %v is %+v at %v, expected %+v", two[0].LocalAddr(), two[0].Peer(), two[0].RemoteAddr(), want)
		}
	}
	ok(t, errors.Join(accepted.Close(), dialed.Close()))

	dialing = dial(l.Addr(), verbs.UD)
	ok(t, must(l.Next(ctx))(t).Reject([]byte("no")))
	var no *verbs.RejectedError
	if got = <-dialing; !errors.As(got.err, &no) || string(no.PrivateData) != "no" {
		t.Errorf("a request that was rejected: %v", got.err)
	}
	dialing = dial(l.Addr(), verbs.UD)
	if _, err := l.Accept(ctx, &verbs.ConnOptions{QP: verbs.QPOptions{Type: verbs.RC}}); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a connection to who asks for datagrams: %v", err)
	}
	if got = <-dialing; !errors.Is(got.err, syscall.ECONNREFUSED) {
		t.Errorf("a request that could not be accepted: %v", got.err)
	}
	for what, dialing := range map[string]chan result{"datagrams of who takes connections": dial(plain.Addr(), verbs.UD),
		"a connection to who takes datagrams": dial(l.Addr(), verbs.RC)} {
		if got = <-dialing; !errors.Is(got.err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v", what, got.err)
		}
	}
}

// TestDatagramServiceEnd: goroutines that wait for datagrams get an error when urdmad ends.
func TestDatagramServiceEnd(t *testing.T) {
	d := startDaemon(t)
	ctx := patience(t)
	l := must(d.open().ListenDatagrams(":0"))(t)
	accepted := make(chan error, 1)
	go func() {
		conn, err := l.Accept(ctx, nil)
		if err == nil {
			_, err = conn.Recv(ctx)
		}
		accepted <- err
	}()
	conn := must(d.open().Dial(ctx, fmt.Sprintf("198.18.0.1:%d", l.Addr().Port()),
		&verbs.ConnOptions{QP: verbs.QPOptions{Type: verbs.UD}}))(t)
	d.Kill()
	if err := <-accepted; !errors.Is(err, verbs.ErrGone) {
		t.Errorf("a server that waits for a datagram: %v", err)
	}
	<-conn.Done()
	if err := conn.SendBytes(ctx, nil); !errors.Is(err, verbs.ErrGone) {
		t.Errorf("a datagram after urdmad's end: %v", err)
	}
	ok(t, conn.Close())
}

// TestJoinMulticast: members of a group receive each other's datagrams, but not their own.
func TestJoinMulticast(t *testing.T) {
	d := startDaemon(t)
	ctx := patience(t)
	var members [3]*verbs.Conn
	var memories [3]*verbs.MR
	for i := range members {
		members[i] = must(d.open().JoinMulticast(ctx, "239.7.7.7", nil))(t)
		memories[i] = memory(t, members[i], 256, true)
		ok(t, members[i].PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{memories[i].SGE(0, 128)}}))
	}
	ok(t, members[1].SendBytes(ctx, []byte("to all")))
	for i := 0; i < len(members); i += 2 {
		c := must(members[i].Recv(ctx))(t)
		h := must(verbs.ParseGRH(memories[i].Bytes()))(t)
		if text := string(memories[i].Bytes()[verbs.GRHLen:c.ByteLen]); text != "to all" || h.Dst.String() != "239.7.7.7" ||
			c.SrcQPN != members[1].QPN() {
			t.Errorf("member %d heard %q, %+v, %+v", i, text, h, c)
		}
	}
	for i, m := range members {
		if i == 1 && m.RemoteAddr().String() != "239.7.7.7:0" {
			t.Errorf("a member's peer is %v", m.RemoteAddr())
		}
		ok(t, m.Close())
	}
	for what, want := range map[string]error{"10.1.1.1": syscall.EINVAL, "ff15::1": syscall.ENETUNREACH} {
		if _, err := d.open().JoinMulticast(ctx, what, nil); !errors.Is(err, want) {
			t.Errorf("joining %s: %v, expected %v", what, err, want)
		}
	}
}
