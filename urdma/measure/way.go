package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"time"

	"urdma/inspect"
	"urdma/verbs"
	"urdma/verbs/probe"
)

// Options say which host to ping.
type Options struct {
	Socket  string        // of the local urdmad
	Peer    string        // address or host name
	Timeout time.Duration // limit for each answer, and for connecting if longer than connectLimit
}

// way is a connection to a peer's responder.
type way struct {
	o      *Options
	client *verbs.Client
	conn   *verbs.Conn
	lent   verbs.Remote
	seed   uint64
	memory *verbs.MR // as large as the memory that the responder offers
	took   time.Duration
}

// spin is how long a wait for an answer polls before it sleeps. The purpose is to measure the network, not how fast
// the kernel wakes us.
const spin = 200 * time.Microsecond

// connectLimit gives urdmad time to find out why it can't connect.
const connectLimit = 6 * time.Second

// connect connects to the peer. Its error says what to do.
func connect(ctx context.Context, o *Options) (*way, error) {
	c, err := verbs.Open(o.Socket)
	if err != nil {
		return nil, err
	}
	w := &way{o: o, client: c, seed: rand.Uint64()}
	start := time.Now()
	if err := w.dial(ctx); err != nil {
		c.Close()
		return nil, explain(o, err)
	}
	w.took = time.Since(start)
	return w, nil
}

func (w *way) dial(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, max(w.o.Timeout, connectLimit))
	defer cancel()
	conn, err := w.client.Dial(limited, net.JoinHostPort(w.o.Peer, strconv.Itoa(probe.Port)),
		&verbs.ConnOptions{Spin: spin, Serve: -1,
			QP: verbs.QPOptions{SendWR: 1, RecvWR: 1}, PrivateData: probe.Request{Seed: w.seed}.Append(nil)})
	if err != nil {
		return err
	}
	answer, err := probe.ParseAnswer(conn.PrivateData())
	if err == nil && int(answer.Bytes) < probe.Bytes {
		err = fmt.Errorf("%w: %d bytes lent, expected %d", probe.ErrForeign, answer.Bytes, probe.Bytes)
	}
	if err == nil {
		w.memory, err = conn.PD().AllocMemory(probe.Bytes, verbs.LocalWrite)
	}
	if err != nil {
		conn.Close()
		return err
	}
	w.conn, w.lent = conn, verbs.Remote{Addr: answer.Addr, RKey: answer.RKey}
	return nil
}

func (w *way) close() {
	w.conn.Close()
	w.client.Close()
}

// read makes one RDMA Read of the first n bytes and checks the data.
func (w *way) read(ctx context.Context, n int) (time.Duration, error) {
	limited, cancel := context.WithTimeout(ctx, w.o.Timeout)
	defer cancel()
	clear(w.memory.Bytes()[:n])
	start := time.Now()
	if err := w.conn.Read(limited, w.lent, w.memory.SGE(0, n)); err != nil {
		return 0, err
	}
	took := time.Since(start)
	want := make([]byte, n)
	probe.Fill(want, w.seed)
	if !bytes.Equal(want, w.memory.Bytes()[:n]) {
		return 0, errWrongData
	}
	return took, nil
}

var errWrongData = errors.New("the answer has other bytes than were asked for")

// look returns urdmad's view of our queue pair, or nil.
func (w *way) look() (*inspect.QP, *inspect.Port) {
	s, err := inspect.Open(w.o.Socket)
	if err != nil {
		return nil, nil
	}
	defer s.Close()
	snap, err := s.Fetch()
	if err != nil {
		return nil, nil
	}
	for i := range snap.QPs {
		q := &snap.QPs[i]
		if q.QPN != w.conn.QPN() || q.PID != os.Getpid() && q.PID != 0 {
			continue
		}
		for j := range snap.Ports {
			if snap.Ports[j].Name == q.Device {
				return q, &snap.Ports[j]
			}
		}
	}
	return nil, nil
}

// Packets counts the segments that a connection sent.
type Packets struct {
	Sent   uint64 `json:"packets_sent"`
	Resent uint64 `json:"segments_sent_again"`
	// Segments is the total to which Resent belongs.
	Segments uint64 `json:"segments_sent"`
}

func (p *Packets) add(q *inspect.QP) {
	if q == nil || q.Wire == nil {
		return
	}
	p.Sent += q.Wire.TxPackets
	p.Resent += q.Wire.Resent
	p.Segments += q.Wire.Segments
}
