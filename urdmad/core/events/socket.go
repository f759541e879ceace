// Package events sends event messages to clients: completion events, asynchronous events and rdma_cm
// events, each kind on its own socket (docs/ARCHITECTURE.md).
//
// A Socket never blocks urdmad: messages that the client's end does not accept wait, up to a bound, and are
// retried. Sockets and the Sender belong to the worker's thread. The package must not know the contents of
// messages.
package events

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"urdma/urdmad/core/clock"
)

// Socket is urdmad's end of a socketpair on which a client reads events.
type Socket struct {
	fd      int
	quota   *Quota
	backlog [][]byte
	queued  bool // it is in Sender.retry
	closed  bool
}

// Quota counts the memory of one client's waiting events. Several Sockets share it.
type Quota struct{ used int }

// MaxBytes bounds that memory, including the overhead of each message.
const (
	MaxBytes     = 4 << 20
	messageBytes = 64
)

func (q *Quota) take(msg []byte) bool {
	if q == nil {
		return true
	}
	if q.used+len(msg)+messageBytes > MaxBytes {
		return false
	}
	q.used += len(msg) + messageBytes
	return true
}

func (q *Quota) give(msg []byte) {
	if q != nil {
		q.used -= len(msg) + messageBytes
	}
}

// MaxBacklog bounds the messages that wait for a client which does not read; further events are dropped, as
// by a full queue of the kernel.
const MaxBacklog = 1 << 16

// A client may have thousands of sockets that it does not read, and one event may be sent to thousands of
// sockets. A turn sends at most atOnce messages; the others wait. Every retryEvery, sockets with waiting
// messages are tried in turn: up to a bound on messages, and a bound on sockets that accept none.
const (
	atOnce        = 512
	retryEvery    = clock.Millisecond
	retrySockets  = 32
	retryMessages = 256
)

// NewSocket takes ownership of fd, a SOCK_SEQPACKET socket whose other end no client has yet; no send on it blocks.
// Waiting messages are charged to the quota; nil: no quota. The client can send nothing: a descriptor that it sent
// could make Close wait for ever (FUSE, SO_LINGER).
func NewSocket(fd int, q *Quota) *Socket {
	_ = unix.Shutdown(fd, unix.SHUT_RD) // fails for what is no socket
	return &Socket{fd: fd, quota: q}
}

// Pair creates a socket and the client's end of it, which preserve message boundaries. Both are blocking.
func Pair() (ours, theirs int, err error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("events: socketpair: %w", err)
	}
	return p[0], p[1], nil
}

// Pending returns how many events the client has not received yet.
func (s *Socket) Pending() int { return len(s.backlog) }

// Close closes the socket, so that the client's end sees the end of the stream.
func (s *Socket) Close() {
	if !s.closed {
		s.closed = true
		for len(s.backlog) > 0 {
			s.drop()
		}
		_ = unix.Close(s.fd) // an error of close needs no action
	}
}

// drop removes the oldest message.
func (s *Socket) drop() {
	s.quota.give(s.backlog[0])
	s.backlog[0] = nil
	s.backlog = s.backlog[1:]
}

// send reports whether the message is done: sent, or never to be sent because the client has closed its
// end.
func (s *Socket) send(msg []byte) bool {
	err := unix.Sendto(s.fd, msg, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
	return err != unix.EAGAIN && err != unix.ENOBUFS && err != unix.EINTR
}

// Sender sends on any number of sockets and retries messages that they did not accept.
type Sender struct {
	clock *clock.Clock
	retry []*Socket // sockets with waiting messages
	timer *clock.Timer
	turn  clock.Time
	sent  int // messages sent in that turn
}

// NewSender returns a Sender whose retries run on c.
func NewSender(c *clock.Clock) *Sender {
	s := &Sender{clock: c}
	s.timer = clock.NewTimer(s.retrySome)
	return s
}

// Send sends one event message; to is nil if the client wants none.
func (s *Sender) Send(to *Socket, msg []byte) {
	if to == nil || to.closed {
		return
	}
	if len(to.backlog) == 0 && s.mayNow() && to.send(msg) {
		return
	}
	if len(to.backlog) < MaxBacklog && to.quota.take(msg) {
		to.backlog = append(to.backlog, append([]byte(nil), msg...))
	}
	if !to.queued {
		to.queued = true
		s.retry = append(s.retry, to)
		s.clock.Hasten(s.timer, s.clock.Now+retryEvery)
	}
}

// mayNow reports whether this turn may send one more message.
func (s *Sender) mayNow() bool {
	if s.turn != s.clock.Now {
		s.turn, s.sent = s.clock.Now, 0
	}
	s.sent++
	return s.sent <= atOnce
}

func (s *Sender) retrySome() {
	each := retryMessages / min(len(s.retry), retrySockets)
	i, sent, full := 0, 0, 0
	for all := len(s.retry); i < all && sent < retryMessages && full < retrySockets; i++ {
		to := s.retry[i]
		for tries := 0; len(to.backlog) > 0 && tries < each && sent < retryMessages; tries++ {
			if !to.send(to.backlog[0]) {
				full++
				break
			}
			to.drop()
			sent++
		}
		if to.queued = len(to.backlog) > 0; to.queued {
			s.retry = append(s.retry, to)
		}
	}
	s.retry = slices.Delete(s.retry, 0, i)
	if len(s.retry) > 0 {
		s.clock.Set(s.timer, s.clock.Now+retryEvery)
	}
}
