package engine

import (
	"golang.org/x/sys/unix"

	"urdma/urdmad/clock"
)

// EventSocket is urdmad's end of a socketpair on which a client reads events.
// It never blocks: what the socket does not take waits here and is tried again
// every millisecond.
type EventSocket struct {
	fd      int
	backlog [][]byte
	queued  bool // in Engine.retry
	closed  bool
}

// maxBacklog bounds what a client that never reads can pile up; past it events
// are dropped, as a full kernel queue would.
const maxBacklog = 1 << 16

const retryEvery = Time(1e6)

// NewEventSocket owns fd, a non-blocking SOCK_SEQPACKET socket.
func NewEventSocket(fd int) *EventSocket { return &EventSocket{fd: fd} }

// SendEvent sends one event message.
func (e *Engine) SendEvent(s *EventSocket, msg []byte) {
	if s == nil || s.closed {
		return
	}
	if len(s.backlog) == 0 && s.send(msg) {
		return
	}
	if len(s.backlog) < maxBacklog {
		s.backlog = append(s.backlog, append([]byte(nil), msg...))
	}
	if !s.queued {
		s.queued = true
		e.retry = append(e.retry, s)
		if len(e.retry) == 1 {
			e.SetTimer(clock.NewTimer(e.retryEvents), e.now+retryEvery)
		}
	}
}

// send reports whether the message is off our hands: sent, or never to be
// (the client has closed its end).
func (s *EventSocket) send(msg []byte) bool {
	err := unix.Sendto(s.fd, msg, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
	return err != unix.EAGAIN && err != unix.ENOBUFS && err != unix.EINTR
}

func (e *Engine) retryEvents() {
	sockets := e.retry
	e.retry = nil
	for _, s := range sockets {
		for len(s.backlog) > 0 && (s.closed || s.send(s.backlog[0])) {
			s.backlog = s.backlog[1:]
		}
		s.queued = len(s.backlog) > 0
		if s.queued {
			e.retry = append(e.retry, s)
		}
	}
	if len(e.retry) > 0 {
		e.SetTimer(clock.NewTimer(e.retryEvents), e.now+retryEvery)
	}
}

// Pending is how many events the client has not taken yet.
func (s *EventSocket) Pending() int { return len(s.backlog) }

// Close closes the socket: the client's end hangs up.
func (s *EventSocket) Close() {
	if !s.closed {
		s.closed = true
		s.backlog = nil
		_ = unix.Close(s.fd) // a close that fails leaves nothing to do
	}
}
