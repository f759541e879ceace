package engine

import (
	"errors"
	"math/bits"

	"urdma/urdmad/datagram"
	"urdma/urdmad/qp"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// ErrNoDoorbell says that a client has used up its doorbells.
var ErrNoDoorbell = errors.New("engine: the client has used up its 4096 doorbells")

// Client is one process as the poll loop sees it: its queue pairs' client, and
// its doorbells.
type Client struct {
	qp.Client

	bells  ring.ServerBells
	byBell [abi.NumDoorbells]*qp.QP
	nextDB int
	faulty bool
}

// AddClient begins to look at a client's doorbells.
func (e *Engine) AddClient(c *Client, doorbells []byte) {
	c.bells.Init(doorbells, 0)
	c.bells.SetYield(e.cfg.YieldPost, e.cfg.YieldPoll, e.cfg.YieldAlone)
	c.bells.SetCore(e.core)
	e.clients = append(e.clients, c)
}

// RemoveClient stops looking; its queue pairs must be gone.
func (e *Engine) RemoveClient(c *Client) {
	for i, x := range e.clients {
		if x == c {
			e.clients = append(e.clients[:i], e.clients[i+1:]...)
			return
		}
	}
}

// AddQP makes a client's queue pair known and gives it a number and a doorbell.
func (e *Engine) AddQP(c *Client, q *qp.QP) (doorbell int, err error) {
	bell, ok := c.takeBell(q)
	if !ok {
		return 0, ErrNoDoorbell
	}
	e.QPs.Add(q)
	return bell, nil
}

// RemoveQP ends a queue pair's connection and forgets it.
func (e *Engine) RemoveQP(c *Client, q *qp.QP, doorbell int) {
	e.QPs.Remove(q)
	c.byBell[doorbell] = nil
}

// takeBell gives q a doorbell number, unique within the client.
func (c *Client) takeBell(q *qp.QP) (int, bool) {
	for range c.byBell {
		i := c.nextDB
		c.nextDB = (c.nextDB + 1) % len(c.byBell)
		if c.byBell[i] == nil {
			c.byBell[i] = q
			return i, true
		}
	}
	return 0, false
}

// Unsent is datagram.Unsent of any of the client's queue pairs.
func (c *Client) Unsent() bool {
	left := false
	for _, q := range &c.byBell {
		left = q != nil && datagram.Unsent(q) || left
	}
	return left
}

// answerBells has post look at the rings of every queue pair whose bell rang.
func (e *Engine) answerBells(post func(*qp.QP)) (n int) {
	for _, c := range e.clients {
		summary := c.bells.Summary()
		for summary != 0 {
			w := bits.TrailingZeros64(summary)
			summary &= summary - 1
			word := c.bells.Word(w)
			for word != 0 {
				b := bits.TrailingZeros64(word)
				word &= word - 1
				if q := c.byBell[w*64+b]; q != nil {
					post(q)
					n++
				}
			}
		}
	}
	return n
}

// wakeWaiting wakes the clients that wait for one of this turn's, or visit's,
// completions.
func (e *Engine) wakeWaiting() {
	for _, c := range e.clients {
		if c.Completed {
			c.Completed = false
			c.bells.WakeWaiting()
		}
	}
}

// Crowded reports whether a client has polled on this core since we last asked, and
// so can't run while we do. An unknown core, -1, is nobody's.
func (e *Engine) Crowded(core int32) bool {
	if core < 0 {
		return false
	}
	for _, c := range e.clients {
		if c.bells.PollsOn(uint32(core)) {
			return true
		}
	}
	return false
}

// setSleeping tells every client whether a post must kick; it reports whether
// a bell rang meanwhile, in which case the worker must not sleep.
func (e *Engine) setSleeping(v bool) (rung bool) {
	for _, c := range e.clients {
		c.bells.SetSleeping(v)
	}
	if !v {
		return false
	}
	return e.rung()
}

// rung reports whether a bell rang since they were answered.
func (e *Engine) rung() bool {
	for _, c := range e.clients {
		if c.bells.Rung() {
			return true
		}
	}
	return false
}

// Moved tells every client which core the worker runs on.
func (e *Engine) Moved(core int32) {
	e.core = uint32(core)
	for _, c := range e.clients {
		c.bells.SetCore(e.core)
	}
}
