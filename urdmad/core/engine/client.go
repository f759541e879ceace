package engine

import (
	"errors"

	"urdma/urdmad/core/qp"
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

// Moved tells every client which core the worker runs on.
func (e *Engine) Moved(core int32) {
	e.core = uint32(core)
	for _, c := range e.clients {
		c.bells.SetCore(e.core)
	}
}
