package control

import (
	"slices"
	"time"
)

// This file bounds connections that have not said HELLO: those that look
// inside, which must work when limits.clients is reached, and strangers'.

// maxWaiting is how many there may be. One more takes the place of one of the
// user who has most, so that nobody keeps another user out.
const maxWaiting = 64

// firstRequestTime is how long a connection may take for its first request.
const firstRequestTime = 5 * time.Second

// wait notes a connection that has not said HELLO; the caller holds s.mu.
func (s *Server) wait(x *Session) {
	if len(s.waiting) >= maxWaiting {
		y := s.waitingToDrop()
		s.waiting = slices.DeleteFunc(s.waiting, func(z *Session) bool { return z == y })
		s.Log.Warn("connection closed: too many have not said HELLO", "limit", maxWaiting, "pid", y.Owner.PID, "uid", y.Owner.UID)
		y.conn.Close()
	}
	s.waiting = append(s.waiting, x)
}

// waitingToDrop is the oldest connection of the user who has most, if possible one
// that has asked nothing.
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

// served takes a connection off the list: it has said HELLO or has ended.
func (s *Server) served(x *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(y *Session) bool { return y == x })
}
