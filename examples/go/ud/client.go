package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"urdma/verbs"
)

const (
	outbox  = 0 // the client's buffers: what it sends, and where answers arrive
	inboxes = 4

	patience = 200 * time.Millisecond // how long to wait for an answer before asking again
	tries    = 25
)

// ask sends datagrams of all lengths and checks the answers.
func ask(ctx context.Context, address string, count int) error {
	var d net.Dialer
	tcp, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer tcp.Close()
	var to verbs.Destination
	if err := json.NewDecoder(tcp).Decode(&to); err != nil {
		return err
	}
	client, err := verbs.Open("")
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := open(client.Devices()[0], 1+inboxes, to.QKey)
	if err != nil {
		return err
	}
	for n := range uint64(inboxes) {
		if err := s.receive(1 + n); err != nil {
			return err
		}
	}
	again, start := 0, time.Now()
	for n := range uint32(count) {
		lost, err := s.exchange(ctx, n, int(n)*37%(s.size-verbs.GRHLen+1), to)
		if err != nil {
			return fmt.Errorf("datagram %d: %w", n, err)
		}
		again += lost
	}
	fmt.Printf("OK: %d datagrams answered in %v, %d sent again\n", count, time.Since(start).Round(time.Millisecond), again)
	return nil
}

// exchange sends datagram n until it is answered, and returns the number of repetitions.
func (s *station) exchange(ctx context.Context, n uint32, length int, to verbs.Destination) (again int, err error) {
	fill(s.buffer(outbox)[verbs.GRHLen:][:length], n)
	for ; again < tries; again++ {
		if err := s.send(outbox, length, n, to); err != nil {
			return again, err
		}
		err := s.await(ctx, n, length)
		if !errors.Is(err, context.DeadlineExceeded) {
			return again, err
		}
	}
	return again, fmt.Errorf("no answer to %d of them", tries)
}

// await waits for the answer to datagram n. Late answers to earlier datagrams, which were counted as lost, are
// recognized by their numbers.
func (s *station) await(ctx context.Context, n uint32, length int) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	var done [1]verbs.Completion
	for answered, sent := false, false; !answered || !sent; {
		if _, err := s.cq.Wait(ctx, done[:]); err != nil {
			return err
		}
		c := &done[0]
		if err := c.Err(); err != nil {
			return err
		}
		if c.Op != verbs.DidRecv {
			sent = true
			continue
		}
		if c.Imm == n {
			got := s.buffer(c.ID)[verbs.GRHLen:c.ByteLen]
			if len(got) != length {
				return fmt.Errorf("%d bytes came back, expected %d", len(got), length)
			}
			if err := check(got, n); err != nil {
				return err
			}
			answered = true
		}
		if err := s.receive(c.ID); err != nil {
			return err
		}
	}
	return nil
}
