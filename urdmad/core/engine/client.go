package engine

import (
	"errors"

	"urdma/urdmad/core/qp"
)

// ErrNoDoorbell reports that all doorbells of a client are in use.
var ErrNoDoorbell = errors.New("engine: the client has used up its 4096 doorbells")

// AddClient adds a client. The engine polls its doorbells from now on.
func (e *Engine) AddClient(c *Client, doorbells []byte) {
	c.bells.Init(doorbells, 0)
	c.bells.SetYield(e.cfg.YieldPost, e.cfg.YieldPoll, e.cfg.YieldAlone)
	c.bells.SetCore(e.core)
	e.clients = append(e.clients, c)
}

// RemoveClient removes a client. Its queue pairs must have been removed.
func (e *Engine) RemoveClient(c *Client) {
	for i, x := range e.clients {
		if x == c {
			e.clients = append(e.clients[:i], e.clients[i+1:]...)
			return
		}
	}
}

// AddQP adds a client's queue pair and gives it a number and a doorbell.
func (e *Engine) AddQP(c *Client, q *qp.QP) (doorbell int, err error) {
	bell, ok := c.takeBell(q)
	if !ok {
		return 0, ErrNoDoorbell
	}
	e.QPs.Add(q)
	return bell, nil
}

// RemoveQP ends a queue pair's connection and removes it.
func (e *Engine) RemoveQP(c *Client, q *qp.QP, doorbell int) {
	e.QPs.Remove(q)
	c.byBell[doorbell] = nil
}

// wakeWaiting wakes the clients that wait for a completion written in this turn or Visit.
func (e *Engine) wakeWaiting() {
	for _, c := range e.clients {
		if c.Completed {
			c.Completed = false
			c.bells.WakeWaiting()
		}
	}
}

// Crowded reports whether a client has polled on this core since the last call, so that it cannot
// run while the worker does. Core -1 means unknown; no client polls there.
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

// setSleeping tells every client whether a post must wake the worker through the kick socket. It
// reports whether a doorbell rang in the meantime; then the worker must not sleep.
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
