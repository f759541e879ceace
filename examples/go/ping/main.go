// Ping measures round trips between two Go programs over urdma, and checks what
// comes back. Start the server, then the client:
//
//	go run ./examples/go/ping -listen :7474
//	go run ./examples/go/ping -n 1000 -size 64 10.0.0.1:7474
//
// It ends with "OK: …" and status 0, or with "FAILED: …" and status 1.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"urdma/verbs"
)

func main() {
	listen := flag.String("listen", "", "serve at this `address`, host:port, for one client")
	n := flag.Int("n", 1000, "round `trips`")
	size := flag.Int("size", 64, "`bytes` of a message, up to 1 MiB")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var said string
	var err error
	switch {
	case *listen != "" && flag.NArg() == 0:
		said, err = serve(ctx, *listen)
	case *listen == "" && flag.NArg() == 1 && *n > 0 && *size > 0 && *size <= maxSize:
		said, err = ping(ctx, flag.Arg(0), *n, *size)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
	fmt.Println("OK:", said)
}

const maxSize = 1 << 20

// side is what both programs need: memory with an inbox and an outbox, and one
// queue for all completions.
type side struct {
	client *verbs.Client
	pd     *verbs.PD
	cq     *verbs.CQ
	mr     *verbs.MR
	done   []verbs.Completion
}

func newSide() (*side, error) {
	client, err := verbs.Open()
	if err != nil {
		return nil, err
	}
	s := &side{client: client, done: make([]verbs.Completion, 8)}
	if err := s.prepare(); err != nil {
		client.Close()
		return nil, err
	}
	return s, nil
}

func (s *side) prepare() error {
	dev, err := s.client.OpenDevice(0)
	if err != nil {
		return err
	}
	if s.pd, err = dev.AllocPD(); err != nil {
		return err
	}
	if s.cq, err = dev.NewCQ(16); err != nil {
		return err
	}
	s.mr, err = s.pd.AllocMemory(2*maxSize, verbs.LocalWrite)
	return err
}

func (s *side) config() verbs.ConnConfig {
	return verbs.ConnConfig{PD: s.pd, SendCQ: s.cq, RecvCQ: s.cq, PrivateData: []byte("ping"),
		Prepare: func(q *verbs.QP) error { return q.PostRecv(0, s.inbox(maxSize)) }}
}

func (s *side) inbox(n int) verbs.Segment  { return s.mr.Segment(0, n) }
func (s *side) outbox(n int) verbs.Segment { return s.mr.Segment(maxSize, n) }

// send sends n bytes of the outbox.
func (s *side) send(q *verbs.QP, n int) error {
	_, err := q.PostSend(&verbs.SendRequest{Op: verbs.OpSend, Signaled: true, Local: []verbs.Segment{s.outbox(n)}})
	return err
}

// receive waits for a message and returns its length; it spins for a while
// before it sleeps, because the answer is often microseconds away. The send
// before it completes on the way.
func (s *side) receive(ctx context.Context) (int, error) {
	for spins := 0; ; spins++ {
		n, err := s.cq.Poll(s.done)
		if n == 0 && err == nil && spins > 20000 {
			n, err = s.cq.Wait(ctx, s.done)
		}
		if err != nil {
			return 0, err
		}
		for i := range s.done[:n] {
			if err := s.done[i].Err(); err != nil {
				return 0, err
			}
			if s.done[i].Op == verbs.OpRecv {
				return s.done[i].Bytes, nil
			}
		}
	}
}

// serve sends back what one client sends, until it disconnects.
func serve(ctx context.Context, address string) (string, error) {
	s, err := newSide()
	if err != nil {
		return "", err
	}
	defer s.client.Close()
	l, err := s.client.Listen(address, 1)
	if err != nil {
		return "", err
	}
	fmt.Println("listening at", l.Addr)
	req, err := l.Accept(ctx)
	if err != nil {
		return "", err
	}
	conn, err := req.Accept(ctx, s.config())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	count := 0
	for ; ; count++ {
		n, err := s.receive(ctx)
		if err != nil {
			select {
			case <-conn.Done(): // the client has had enough
				return fmt.Sprintf("answered %d messages of %v", count, conn.Peer), nil
			case <-time.After(time.Second):
				return "", err
			}
		}
		copy(s.mr.Bytes()[maxSize:], s.mr.Bytes()[:n])
		if err := conn.PostRecv(0, s.inbox(maxSize)); err != nil {
			return "", err
		}
		if err := s.send(conn.QP, n); err != nil {
			return "", err
		}
	}
}

// ping sends n messages and waits for each to come back.
func ping(ctx context.Context, address string, n, size int) (string, error) {
	s, err := newSide()
	if err != nil {
		return "", err
	}
	defer s.client.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := s.client.Dial(ctx, address, s.config())
	if err != nil {
		return "", err
	}
	start := time.Now()
	for i := range n {
		if err := s.once(ctx, conn, i, size); err != nil {
			return "", fmt.Errorf("round trip %d: %w", i, err)
		}
	}
	each := time.Since(start) / time.Duration(n)
	if err := conn.Close(); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d round trips of %d bytes, %v each", n, size, each), nil
}

func (s *side) once(ctx context.Context, conn *verbs.Conn, i, size int) error {
	in, out := s.mr.Bytes()[:size], s.mr.Bytes()[maxSize:maxSize+size]
	for k := range out {
		out[k] = byte(i*31 + k)
	}
	if err := s.send(conn.QP, size); err != nil {
		return err
	}
	got, err := s.receive(ctx)
	if err != nil {
		return err
	}
	if got != size || string(in) != string(out) {
		return fmt.Errorf("%d bytes came back, and not those that were sent (%d)", got, size)
	}
	return conn.PostRecv(0, s.inbox(maxSize))
}
