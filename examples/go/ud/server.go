package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"urdma/verbs"
)

const buffers = 64 // number of the server's buffers

func serve(ctx context.Context, address string, clients int) error {
	client, err := verbs.Open("")
	if err != nil {
		return err
	}
	defer client.Close()
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		return err
	}
	qkey := binary.NativeEndian.Uint32(random[:]) &^ (1 << 31)
	s, err := open(client.Devices()[0], buffers, qkey)
	if err != nil {
		return err
	}
	for n := range uint64(buffers) {
		if err := s.receive(n); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	go func() { stop(s.answer(ctx, qkey)) }()
	go func() { stop(tell(ctx, address, verbs.Destination{Number: s.Number(), QKey: qkey}, clients)) }()
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, errServed) {
		return err
	}
	fmt.Printf("OK: %d clients served\n", clients)
	return nil
}

// errServed: all clients have come and gone.
var errServed = errors.New("all clients are served")

// tell sends each client the destination of its datagrams. It returns after the given number of clients have ended;
// 0 never returns.
func tell(ctx context.Context, address string, here verbs.Destination, clients int) error {
	var how net.ListenConfig
	l, err := how.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer l.Close()
	context.AfterFunc(ctx, func() { l.Close() })
	ended := make(chan struct{})
	for n := 0; clients == 0 || n < clients; n++ {
		tcp, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer tcp.Close()
			if err := json.NewEncoder(tcp).Encode(here); err == nil {
				_, _ = io.Copy(io.Discard, tcp) // until the client closes the connection
			}
			if clients != 0 {
				ended <- struct{}{}
			}
		}()
	}
	for range clients {
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errServed
}

// answer returns each datagram to its sender, from the buffer in which it arrived. The buffer is posted again when
// that send is complete.
func (s *station) answer(ctx context.Context, qkey uint32) error {
	var done [buffers]verbs.Completion
	for {
		n, err := s.cq.Wait(ctx, done[:])
		if err != nil {
			return err
		}
		for i := range done[:n] {
			if err := s.next(&done[i], qkey); err != nil {
				return err
			}
		}
	}
}

func (s *station) next(c *verbs.Completion, qkey uint32) error {
	if err := c.Err(); err != nil {
		return err
	}
	if c.Op != verbs.DidRecv {
		return s.receive(c.ID)
	}
	to, err := c.Sender(s.buffer(c.ID), qkey)
	if err != nil {
		return err
	}
	return s.send(c.ID, int(c.ByteLen)-verbs.GRHLen, c.Imm, to)
}
