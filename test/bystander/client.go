package bystander

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"urdma/verbs"
)

// Client is the end that writes, reads and sends.
type Client struct {
	Client       *verbs.Client
	conn         *verbs.Conn
	seed         uint64
	offered      verbs.Remote
	out, in, box *verbs.MR

	// Pause is the longest wait of a round between its Write and its Read.
	Pause time.Duration

	rounds  atomic.Int64
	longest atomic.Int64 // of a round, nanoseconds
}

// Dial opens a client of the urdmad at the socket and connects it to a Server.
func Dial(ctx context.Context, socket, address string, seed uint64) (*Client, error) {
	c := &Client{seed: seed}
	var err error
	if c.Client, err = verbs.OpenContext(ctx, socket); err != nil {
		return nil, err
	}
	if err = c.dial(ctx, address); err != nil {
		c.Client.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) dial(ctx context.Context, address string) (err error) {
	c.conn, err = c.Client.Dial(ctx, address, &verbs.ConnOptions{Prepare: func(conn *verbs.Conn) error {
		if err := allocate(conn, map[**verbs.MR]int{&c.out: lentBytes, &c.in: lentBytes, &c.box: replyBytes}); err != nil {
			return err
		}
		return c.receive(conn)
	}})
	if err != nil {
		return err
	}
	offered := c.conn.PrivateData()
	if len(offered) < 12 {
		return fmt.Errorf("the server gave %d bytes of private data, expected 12", len(offered))
	}
	c.offered = verbs.Remote{Addr: binary.LittleEndian.Uint64(offered), RKey: binary.LittleEndian.Uint32(offered[8:])}
	return nil
}

func (c *Client) receive(conn *verbs.Conn) error {
	return conn.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{c.box.SGE(0, replyBytes)}})
}

// Rounds returns the number of finished rounds.
func (c *Client) Rounds() int64 { return c.rounds.Load() }

// Longest returns the duration of the longest finished round.
func (c *Client) Longest() time.Duration { return time.Duration(c.longest.Load()) }

// Run works until stop is closed, then says goodbye to the server.
func (c *Client) Run(ctx context.Context, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return c.conn.SendBytes(ctx, nil)
		default:
		}
		begin := time.Now()
		if err := c.round(ctx, uint64(c.rounds.Load())); err != nil {
			return fmt.Errorf("round %d of the working end: %w", c.rounds.Load(), err)
		}
		c.longest.Store(max(c.longest.Load(), int64(time.Since(begin))))
		c.rounds.Add(1)
	}
}

// round writes and reads back, sends a message and waits for the answer. It checks every byte, including the offered
// memory that nobody may change.
func (c *Client) round(ctx context.Context, round uint64) error {
	n := content(c.out.Bytes(), c.seed, round)
	if err := c.conn.Write(ctx, c.offered, c.out.SGE(0, lentBytes)); err != nil {
		return err
	}
	if c.Pause != 0 {
		time.Sleep(time.Duration(round*7919) % c.Pause)
	}
	clear(c.in.Bytes())
	if err := c.conn.Read(ctx, c.offered, c.in.SGE(0, lentBytes)); err != nil {
		return err
	}
	if !bytes.Equal(c.in.Bytes(), c.out.Bytes()) {
		return fmt.Errorf("a Read of %d bytes brought others than were written", lentBytes)
	}
	if err := c.conn.Send(ctx, c.out.SGE(0, n)); err != nil {
		return err
	}
	got, err := c.conn.Recv(ctx)
	if err != nil {
		return err
	}
	if answer := binary.LittleEndian.Uint64(c.box.Bytes()); got.ByteLen != replyBytes || answer != round {
		return fmt.Errorf("an answer of %d bytes to round %d", got.ByteLen, answer)
	}
	return c.receive(c.conn)
}

// Close ends the client.
func (c *Client) Close() { c.Client.Close() }
