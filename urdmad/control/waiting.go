package control

import (
	"slices"
	"time"
)

// This file limits connections that have not said HELLO: those of urdma show and similar
// commands, which must work even when limits.clients is reached, and those of strangers.

// maxWaiting is the largest number of such connections. A further one replaces a connection of
// the user with the most, so that no user can lock out another.
const maxWaiting = 64

// firstRequestTime is the time limit for a connection's first request.
const firstRequestTime = 5 * time.Second

// wait adds a connection that has not said HELLO; the caller holds s.mu.
func (s *Server) wait(x *Session) {
	if len(s.waiting) >= maxWaiting {
		y := s.waitingToDrop()
		s.waiting = slices.DeleteFunc(s.waiting, func(z *Session) bool { return z == y })
		s.Log.Warn("connection closed: too many have not said HELLO", "limit", maxWaiting, "pid", y.Owner.PID, "uid",
			y.Owner.UID)
		y.conn.Close()
	}
	s.waiting = append(s.waiting, x)
}

// waitingToDrop returns the connection to drop: the oldest of the user with the most connections,
// preferably one that has sent no request.
func (s *Server) waitingToDrop() (worst *Session) {
	count := map[int]int{}
	for _, x := range s.waiting {
		count[x.Owner.UID]++
	}
	for _, x := range s.waiting {
		n, most := count[x.Owner.UID], 0
		if worst != nil {
			most = count[worst.Owner.UID]
		}
		if n > most || n == most && worst.asked.Load() && !x.asked.Load() {
			worst = x
		}
	}
	return worst
}

// served removes a connection from the list because it has said HELLO or has ended.
func (s *Server) served(x *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(y *Session) bool { return y == x })
}
