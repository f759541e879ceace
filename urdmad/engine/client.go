package engine

import (
	"math/bits"

	"urdma/urdmad/mem"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// Client is one process as the data path sees it: its doorbells and its memory.
type Client struct {
	ID    uint64
	Name  string // command and pid, for logs
	Space *mem.Space

	// Fault is called once, on the worker's thread, when the client's memory
	// could not be touched; the owner then removes the client.
	Fault func(err error)

	bells  ring.ServerBells
	byBell [abi.NumDoorbells]*QP
	nextDB int
	faulty bool
}

// AddClient begins to look at a client's doorbells.
func (e *Engine) AddClient(c *Client, doorbells []byte) {
	c.bells.Init(doorbells, 0)
	c.bells.SetYield(e.cfg.YieldPost, e.cfg.YieldPoll)
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

// takeBell gives qp a doorbell number, unique within the client.
func (c *Client) takeBell(qp *QP) (int, bool) {
	for range c.byBell {
		i := c.nextDB
		c.nextDB = (c.nextDB + 1) % len(c.byBell)
		if c.byBell[i] == nil {
			c.byBell[i] = qp
			return i, true
		}
	}
	return 0, false
}

// answerBells looks at the rings of every queue pair whose bell rang.
func (e *Engine) answerBells() (n int) {
	for _, c := range e.clients {
		summary := c.bells.Summary()
		for summary != 0 {
			w := bits.TrailingZeros64(summary)
			summary &= summary - 1
			word := c.bells.Word(w)
			for word != 0 {
				b := bits.TrailingZeros64(word)
				word &= word - 1
				if qp := c.byBell[w*64+b]; qp != nil {
					e.post(qp)
					n++
				}
			}
		}
	}
	return n
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
	for _, c := range e.clients {
		rung = rung || c.bells.Rung()
	}
	return rung
}

// Moved tells every client which core the worker runs on.
func (e *Engine) Moved(core int32) {
	e.core = uint32(core)
	for _, c := range e.clients {
		c.bells.SetCore(e.core)
	}
}
