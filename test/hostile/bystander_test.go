package hostile

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"urdma/verbs"
)

const (
	messageBytes = 20000
	lentBytes    = 64 << 10
	bystanderEnd = "198.18.0.1:7801"
)

// bystanders are two well-behaved clients with a connection.
type bystanders struct {
	server, client *verbs.Client
	listener       *verbs.Listener
	here, there    *verbs.Conn
	out, in        *verbs.MR // the client's
	box, lent      *verbs.MR // the server's: what it receives, what it lends
	rng            *rand.Rand
	rounds         atomic.Int64
	longest        time.Duration // of a round
}

const all = verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite

// newBystanders connects two clients; the sockets are those of their urdmads.
func newBystanders(ctx context.Context, server, client string, seed uint64) (b *bystanders, err error) {
	b = &bystanders{rng: rand.New(rand.NewPCG(seed, 1))}
	if b.server, err = verbs.Open(server); err != nil {
		return b, err
	}
	if b.client, err = verbs.Open(client); err != nil {
		return b, err
	}
	if b.listener, err = b.server.Listen(bystanderEnd); err != nil {
		return b, err
	}
	accepted := make(chan error, 1)
	go func() {
		var err error
		b.there, err = b.listener.Accept(ctx, &verbs.ConnOptions{Prepare: func(c *verbs.Conn) error {
			return allocate(c, map[**verbs.MR]int{&b.box: messageBytes, &b.lent: lentBytes})
		}})
		accepted <- err
	}()
	if b.here, err = b.client.Dial(ctx, bystanderEnd, nil); err != nil {
		return b, err
	}
	if err = <-accepted; err != nil {
		return b, err
	}
	return b, allocate(b.here, map[**verbs.MR]int{&b.out: lentBytes, &b.in: lentBytes})
}

func allocate(c *verbs.Conn, sizes map[**verbs.MR]int) (err error) {
	for m, n := range sizes {
		if *m, err = c.PD().AllocMemory(n, all); err != nil {
			return err
		}
	}
	return nil
}

// run goes on until stop is closed.
func (b *bystanders) run(ctx context.Context, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		begin := time.Now()
		if err := b.round(ctx); err != nil {
			return fmt.Errorf("round %d of the well-behaved pair: %w", b.rounds.Load(), err)
		}
		b.longest = max(b.longest, time.Since(begin))
		b.rounds.Add(1)
	}
}

// round sends a message, writes and reads back, and checks every byte: of the
// lent memory also those that nobody has a right to change.
func (b *bystanders) round(ctx context.Context) error {
	for i := range b.out.Bytes() {
		b.out.Bytes()[i] = byte(b.rng.Uint32())
	}
	n := 1 + b.rng.IntN(messageBytes)
	if err := b.there.PostRecv(&verbs.RecvWR{SGE: []verbs.SGE{b.box.SGE(0, messageBytes)}}); err != nil {
		return err
	}
	if err := b.here.Send(ctx, b.out.SGE(0, n)); err != nil {
		return err
	}
	got, err := b.there.Recv(ctx)
	if err != nil {
		return err
	}
	if int(got.ByteLen) != n || !bytes.Equal(b.box.Bytes()[:n], b.out.Bytes()[:n]) {
		return fmt.Errorf("a message of %d bytes arrived as %d others", n, got.ByteLen)
	}
	if err := b.here.Write(ctx, b.lent.Remote(0), b.out.SGE(0, lentBytes)); err != nil {
		return err
	}
	if !bytes.Equal(b.lent.Bytes(), b.out.Bytes()) {
		return fmt.Errorf("a Write of %d bytes placed others", lentBytes)
	}
	time.Sleep(time.Duration(b.rng.IntN(2000)) * time.Microsecond)
	clear(b.in.Bytes())
	if err := b.here.Read(ctx, b.lent.Remote(0), b.in.SGE(0, lentBytes)); err != nil {
		return err
	}
	if !bytes.Equal(b.in.Bytes(), b.out.Bytes()) || !bytes.Equal(b.lent.Bytes(), b.out.Bytes()) {
		return fmt.Errorf("a Read of %d bytes brought others, or lent memory was changed by a stranger", lentBytes)
	}
	return nil
}

func (b *bystanders) close() {
	for _, c := range []*verbs.Client{b.client, b.server} {
		if c != nil {
			c.Close()
		}
	}
}
