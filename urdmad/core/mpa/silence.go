package mpa

import (
	"urdma/urdmad/core/clock"

	"golang.org/x/sys/unix"
)

// A peer that acknowledges nothing any more is found out here: TCP_USER_TIMEOUT would
// end, too, connections whose peer has no room because its program posts no receive
// (tcp(7)), which may last. Keepalives find a peer that nothing is sent to.

// silence is what is known of a peer's.
type silence struct {
	timer *clock.Timer
	limit clock.Time // for it
	set   bool
	since clock.Time // nothing was on its way then
}

// sounded: something is on its way, which the peer is to acknowledge.
func (c *Conn) sounded() {
	if q := &c.silence; !q.set && c.live() {
		q.set, q.since = true, c.now()
		c.s.clock.Set(q.timer, c.now()+c.silence.limit/4)
	}
}

// leastProbes is how many probes of a window a peer leaves unanswered that is dead. TCP
// sends them at intervals of up to two minutes.
const leastProbes = 3

// listen is the timer: has the peer acknowledged what is on its way?
func (c *Conn) listen() {
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
