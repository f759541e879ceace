package engine

import (
	"math/bits"

	"urdma/urdmad/core/qp"
)

// This file is what happens when a doorbell rings: a client has posted to the queue pair
// of that bell (urdma_abi.h).

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

// lastPerTurn bounds the queue pairs of a client that has gone whose posts a turn takes.
const lastPerTurn = 64

// SendLast is qp.QP.SendLast of any of the client's queue pairs, so many more in each
// call.
func (c *Client) SendLast() (left bool) {
	begun := 0
	for _, q := range &c.byBell {
		if q == nil {
			continue
		}
		if !q.Leaving() {
			if begun++; begun > lastPerTurn {
				return true
			}
		}
		left = q.SendLast() || left
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

// rung reports whether a bell rang since they were answered.
func (e *Engine) rung() bool {
	for _, c := range e.clients {
		if c.bells.Rung() {
			return true
		}
	}
	return false
}
