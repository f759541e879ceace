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
	lent         verbs.Remote
	out, in, box *verbs.MR

	// Pause is how long a round may wait between its Write and its Read.
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
	lent := c.conn.PrivateData()
	if len(lent) < 12 {
		return fmt.Errorf("the server gave %d bytes of private data, expected 12", len(lent))
	}
	c.lent = verbs.Remote{Addr: binary.LittleEndian.Uint64(lent), RKey: binary.LittleEndian.Uint32(lent[8:])}
	return nil
}

func (c *Client) receive(conn *verbs.Conn) error {
	return conn.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{c.box.SGE(0, replyBytes)}})
}

// Rounds is how many are done.
func (c *Client) Rounds() int64 { return c.rounds.Load() }

// Longest is what the longest round took, one under way not counted.
func (c *Client) Longest() time.Duration { return time.Duration(c.longest.Load()) }

// Run goes on until stop is closed, then takes its leave of the server.
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

// round writes and reads back, sends a message and waits for the answer, and
// checks every byte: of the lent memory also those that nobody has a right to
// change.
func (c *Client) round(ctx context.Context, round uint64) error {
	n := content(c.out.Bytes(), c.seed, round)
	if err := c.conn.Write(ctx, c.lent, c.out.SGE(0, lentBytes)); err != nil {
		return err
	}
	if c.Pause != 0 {
		time.Sleep(time.Duration(round*7919) % c.Pause)
	}
	clear(c.in.Bytes())
	if err := c.conn.Read(ctx, c.lent, c.in.SGE(0, lentBytes)); err != nil {
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
