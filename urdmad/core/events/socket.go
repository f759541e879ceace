// Package events sends event messages to clients: completion events,
// asynchronous events and rdma_cm events, each kind on a socket of its own
// (docs/ARCHITECTURE.md).
//
// A Socket never blocks urdmad: what the client's end does not take waits, up to
// a bound, and is tried again later. Sockets and the Sender belong
// to the worker's thread. The package must not know what a message says.
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
	queued  bool // in Sender.retry
	closed  bool
}

// Quota bounds the memory that the events of one client take while they wait.
// Sockets share it.
type Quota struct{ used int }

// MaxBytes is how much that is, with what keeping a message costs.
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

// MaxBacklog bounds the messages that a client which never reads can pile up;
// past it events are dropped, as a full kernel queue would.
const MaxBacklog = 1 << 16

// A client may have thousands of sockets that it does not read, and one happening may be
// told on thousands. A turn sends atOnce messages; the others wait. Each retryEvery
// sockets on which some wait are tried, in turn: up to so many messages in all, and so
// many sockets that take none.
const (
	atOnce        = 512
	retryEvery    = clock.Millisecond
	retrySockets  = 32
	retryMessages = 256
)

// NewSocket owns fd, a SOCK_SEQPACKET socket, on which no send blocks. What waits
// counts against the quota; nil is none.
func NewSocket(fd int, q *Quota) *Socket { return &Socket{fd: fd, quota: q} }

// Pair makes a socket and the client's end of it, on which messages travel one at a
// time. Both may block.
func Pair() (ours, theirs int, err error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("events: socketpair: %w", err)
	}
	return p[0], p[1], nil
}

// Pending is how many events the client has not taken yet.
func (s *Socket) Pending() int { return len(s.backlog) }

// Close closes the socket: the client's end hangs up.
func (s *Socket) Close() {
	if !s.closed {
		s.closed = true
		for len(s.backlog) > 0 {
			s.drop()
		}
		_ = unix.Close(s.fd) // a close that fails leaves nothing to do
	}
}

// drop forgets the oldest message.
func (s *Socket) drop() {
	s.quota.give(s.backlog[0])
	s.backlog[0] = nil
	s.backlog = s.backlog[1:]
}

// send reports whether the message is off our hands: sent, or never to be
// (the client has closed its end).
func (s *Socket) send(msg []byte) bool {
	err := unix.Sendto(s.fd, msg, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
	return err != unix.EAGAIN && err != unix.ENOBUFS && err != unix.EINTR
}

// Sender sends on any number of sockets and repeats what they did not take.
type Sender struct {
	clock *clock.Clock
	retry []*Socket // with a backlog
	timer *clock.Timer
	turn  clock.Time
	sent  int // in that turn
}

// NewSender returns a Sender whose retries run on c.
func NewSender(c *clock.Clock) *Sender {
	s := &Sender{clock: c}
	s.timer = clock.NewTimer(s.retrySome)
	return s
}

// Send sends one event message; to is nil where the client wants none.
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

// mayNow reports whether this turn sends one more message.
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
