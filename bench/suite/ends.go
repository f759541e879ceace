package suite

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"urdma/test/lab"
	"urdma/verbs"
)

// This file has two programs in one, made with package verbs. They measure two things that perftest does not show:
// the share of one of many queue pairs, and the waiting time for a completion.

// ends are queue pairs of a client of one urdmad, connected by number with queue pairs of a client of another
// urdmad, or of the same.
type ends struct {
	clients [2]*verbs.Client
	queues  [2]*verbs.CQ
	pairs   [2][]*verbs.QP
	memory  [2]*verbs.MR
}

// patience is how long urdmad may take for a call.
const patience = 10 * time.Second

// mostCompletions is more than stream ever has outstanding.
const mostCompletions = 4096

// connect makes n queue pairs at each end, with slots work requests in each direction and a buffer of size bytes.
func connect(hosts pair, n, slots, size int) (*ends, error) {
	e := &ends{}
	for side, node := range []*lab.Node{hosts.a, hosts.b} {
		if err := e.open(side, node, n, slots, size); err != nil {
			e.close()
			return nil, err
		}
	}
	for i := range n {
		a, b := e.pairs[0][i], e.pairs[1][i]
		err := a.ConnectNumber(b.Number())
		if err == nil {
			err = b.ConnectNumber(a.Number())
		}
		if err != nil {
			e.close()
			return nil, fmt.Errorf("connecting queue pair %d of %d: %w", i+1, n, err)
		}
	}
	return e, nil
}

func (e *ends) open(side int, node *lab.Node, n, slots, size int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := verbs.OpenContext(ctx, node.Socket())
	if err != nil {
		return err
	}
	e.clients[side] = client
	if len(client.Devices()) == 0 {
		return fmt.Errorf("urdmad of %s has no port", node.Name)
	}
	x, err := client.Devices()[0].Open()
	if err != nil {
		return err
	}
	pd, err := x.AllocPD()
	if err != nil {
		return err
	}
	if e.queues[side], err = x.CreateCQ(min(n*slots, mostCompletions), nil); err != nil {
		return err
	}
	if e.memory[side], err = pd.AllocMemory(size, verbs.LocalWrite|verbs.RemoteWrite); err != nil {
		return err
	}
	for range n {
		q, err := pd.CreateQP(e.queues[side], e.queues[side],
			verbs.QPOptions{SendWR: slots, RecvWR: slots, SendSGE: 1, RecvSGE: 1})
		if err != nil {
			return err
		}
		e.pairs[side] = append(e.pairs[side], q)
	}
	return nil
}

// close ends both clients, and with them all their objects.
func (e *ends) close() {
	for _, c := range e.clients {
		if c != nil {
			_ = c.Close() // urdmad cleans up after a client in any case
		}
	}
}

// write posts a Write of size bytes from the first end's i-th queue pair.
func (e *ends) write(i, size int) error {
	return e.pairs[0][i].PostSend(&verbs.SendWR{ID: uint64(i), Op: verbs.OpWrite, Flags: verbs.Signaled,
		SGE: []verbs.SGE{e.memory[0].SGE(0, size)}, Remote: e.memory[1].Remote(0)})
}

// stream keeps depth Writes of size bytes outstanding on each queue pair for the given time. It calls completed
// with the queue pair of each completion, on a thread of its own that polls.
func (e *ends) stream(size, depth int, length time.Duration, completed func(i int, now time.Time)) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range depth {
		for i := range e.pairs[0] {
			if err := e.write(i, size); err != nil {
				return err
			}
		}
	}
	var done [64]verbs.Completion
	for end := time.Now().Add(length); ; {
		n, err := e.queues[0].Poll(done[:])
		if err != nil {
			return err
		}
		now := time.Now()
		if now.After(end) {
			return nil // outstanding Writes are flushed when the clients end
		}
		for _, c := range done[:n] {
			if err := c.Err(); err != nil {
				return err
			}
			completed(int(c.ID), now)
			if err := e.write(int(c.ID), size); err != nil {
				return err
			}
		}
	}
}
