package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"urdma/verbs"
)

// server is the pool and its clients.
type server struct {
	pd     *verbs.PD
	srq    *verbs.SRQ
	cq     *verbs.CQ // completions of all clients
	memory *verbs.MR // the pool: receive n is the n-th piece of longest bytes

	mu    sync.Mutex
	conns map[uint32]*verbs.Conn // by queue pair number
	ended chan *verbs.Conn
}

func serve(ctx context.Context, address string, clients, pool int) error {
	client, err := verbs.Open("")
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := newServer(client.Devices()[0], pool)
	if err != nil {
		return err
	}
	l, err := client.Listen(address)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	go func() { stop(s.accept(ctx, l)) }()
	go func() { stop(s.answer(ctx)) }()
	for gone := 0; clients == 0 || gone < clients; gone++ {
		select {
		case conn := <-s.ended:
			if err := s.drop(conn); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	fmt.Printf("OK: %d clients served from %d buffers\n", clients, pool)
	return nil
}

func newServer(device *verbs.Device, pool int) (*server, error) {
	s := &server{conns: map[uint32]*verbs.Conn{}, ended: make(chan *verbs.Conn)}
	x, err := device.Open()
	if err != nil {
		return nil, err
	}
	channel, err := x.CreateCompChannel()
	if err != nil {
		return nil, err
	}
	if s.cq, err = x.CreateCQ(pool, channel); err != nil {
		return nil, err
	}
	if s.pd, err = x.AllocPD(); err != nil {
		return nil, err
	}
	if s.memory, err = s.pd.AllocMemory(pool*longest, verbs.LocalWrite); err != nil {
		return nil, err
	}
	if s.srq, err = s.pd.CreateSRQ(verbs.SRQOptions{RecvWR: pool, RecvSGE: 1}); err != nil {
		return nil, err
	}
	for n := range pool {
		if err := s.post(uint64(n)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *server) post(n uint64) error {
	return s.srq.PostRecv(&verbs.RecvWR{ID: n, SGE: []verbs.SGE{s.memory.SGE(int(n)*longest, longest)}})
}

// accept accepts clients. It registers each by queue pair number before the first message can arrive.
func (s *server) accept(ctx context.Context, l *verbs.Listener) error {
	options := verbs.ConnOptions{PD: s.pd, RecvCQ: s.cq, QP: verbs.QPOptions{SRQ: s.srq}}
	options.Prepare = func(conn *verbs.Conn) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conns[conn.QPN()] = conn
		return nil
	}
	for {
		conn, err := l.Accept(ctx, &options)
		if err != nil {
			return fmt.Errorf("accepting: %w", err)
		}
		go func() {
			<-conn.Done()
			s.ended <- conn
		}()
	}
}

func (s *server) drop(conn *verbs.Conn) error {
	s.mu.Lock()
	delete(s.conns, conn.QPN())
	s.mu.Unlock()
	return conn.Close()
}

// answer answers messages of all clients as they arrive.
func (s *server) answer(ctx context.Context) error {
	var done [16]verbs.Completion
	for {
		n, err := s.cq.Wait(ctx, done[:])
		if err != nil {
			return fmt.Errorf("waiting for messages: %w", err)
		}
		for _, c := range done[:n] {
			if err := s.reply(ctx, &c); err != nil {
				return err
			}
		}
	}
}

// reply answers one message and returns its buffer to the pool. If a client disconnects in the middle of a message,
// the receive for that message comes back flushed.
func (s *server) reply(ctx context.Context, c *verbs.Completion) error {
	message := s.memory.Bytes()[c.ID*longest:][:c.ByteLen]
	total := sum(message)
	if err := s.post(c.ID); err != nil {
		return fmt.Errorf("posting receive %d: %w", c.ID, err)
	}
	s.mu.Lock()
	conn := s.conns[c.QPN]
	s.mu.Unlock()
	if conn == nil || c.Status != verbs.StatusSuccess {
		return nil
	}
	err := conn.SendBytes(ctx, binary.BigEndian.AppendUint64(nil, total))
	if errors.Is(err, verbs.ErrDisconnected) || errors.Is(err, verbs.ErrClosed) {
		return nil
	}
	return err
}
