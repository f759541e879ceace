package mpa

import (
	"urdma/urdmad/core/clock"

	"golang.org/x/sys/unix"
)

// This file detects a peer that acknowledges nothing any more. TCP_USER_TIMEOUT would also end connections
// whose peer's buffers are full because its program posts no receive (tcp(7)), which may last. Keepalives
// detect a dead peer to which nothing is sent.

// silence is the state of that detection.
type silence struct {
	timer *clock.Timer
	limit clock.Time // longest silence
	set   bool
	since clock.Time // at this time everything was acknowledged
}

// startSilence starts the timer: data were sent, which the peer must acknowledge.
func (c *Conn) startSilence() {
	if q := &c.silence; !q.set && c.live() {
		q.set, q.since = true, c.now()
		c.s.clock.Set(q.timer, c.now()+c.silence.limit/4)
	}
}

// leastProbes is how many unanswered zero-window probes show that a peer is dead. TCP sends them at
// intervals of up to two minutes.
const leastProbes = 3

// checkSilence is the timer function: it checks whether the peer has acknowledged the data in flight.
func (c *Conn) checkSilence() {
	q := &c.silence
	q.set = false
	if !c.live() {
		return
	}
	t, err := unix.GetsockoptTCPInfo(c.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || t.Unacked == 0 && t.Notsent_bytes == 0 {
		return
	}
	unacknowledged := min(clock.Time(t.Last_ack_recv)*clock.Millisecond, c.now()-q.since)
	if unacknowledged >= c.silence.limit && (t.Unacked > 0 || t.Probes >= leastProbes) {
		c.lost(unix.ETIMEDOUT)
		return
	}
	q.set = true
	c.s.clock.Set(q.timer, c.now()+c.silence.limit/4)
}
