package engine

import (
	"math/bits"

	"urdma/urdmad/core/qp"
)

// This file handles doorbells. A ringing doorbell means that a client has posted to that
// doorbell's queue pair (urdma_abi.h).

// takeBell gives q a doorbell number that is unique within the client.
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

// lastPerTurn is the number of queue pairs of an ended client whose last posts are fetched in a
// turn.
const lastPerTurn = 64

// SendLast calls qp.QP.SendLast for the client's queue pairs, a limited number of new ones in
// each call, and reports whether some of their work can still reach a peer.
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

// answerBells calls post for every queue pair whose doorbell rang.
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

// rung reports whether a doorbell rang since the last answerBells.
func (e *Engine) rung() bool {
	for _, c := range e.clients {
		if c.bells.Rung() {
			return true
		}
	}
	return false
}
