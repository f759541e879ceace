package rc

import "urdma/urdmad/core/clock"

// loss has the timers of a requester: how long nothing was heard, and until when nothing may be sent.
//
// The queue pair's time-out decides how often a retry is counted. A lost last packet draws no NAK, so it is
// sent again sooner, after a few round trips, without counting as a retry.
type loss struct {
	pause         clock.Time // nothing is sent before this time: the receiver was not ready
	again         clock.Time // when outstanding packets are sent again; Never if there are none
	wait          clock.Time // the interval before again; it doubles
	counted       clock.Time // when the last retry was counted, or something was heard
	tries         int
	notReadyAt    Sequence // the packet whose receiver was not ready
	notReadyTries int
	went          clock.Time // when we last went back for a missing answer
	wentTo        Sequence   // end of the packets that were outstanding then

	missed bool // we went back because of a NAK, not a time-out

	// After a time-out only one request is sent, to learn what the peer has: it may have everything, and
	// only answer late.
	asking bool
	asked  Sequence // the end of that request; 0: it was not sent yet

	rtt       clock.Time // smoothed round-trip time; 0: not measured yet
	measured  Sequence   // the answer up to this number gives the next measurement; 0: none is in progress
	measuring clock.Time
}

const (
	firstWait = 20 * clock.Millisecond // before a round trip is measured
	leastWait = 4 * clock.Millisecond  // peers are processes, which may not run for a while
)

func (l *loss) init() { *l = loss{again: clock.Never} }

// begin starts the timers: packets are outstanding from now on.
func (l *loss) begin(now clock.Time) {
	if l.wait == 0 || l.rtt != 0 {
		l.wait = l.firstWait()
	}
	l.counted, l.again, l.tries = now, now+l.wait, 0
}

func (l *loss) firstWait() clock.Time {
	if l.rtt == 0 {
		return firstWait
	}
	return leastWait + 4*l.rtt
}

// measure starts a measurement, which ends with the answer to the packet that ends at s.
func (l *loss) measure(s Sequence, now clock.Time) {
	if l.measured == 0 {
		l.measured, l.measuring = s, now
	}
}

// progress records that everything before s has arrived.
func (l *loss) progress(now clock.Time, s Sequence) {
	if l.measured != 0 && s >= l.measured {
		took := max(now-l.measuring, 1)
		if l.rtt == 0 {
			l.rtt = took
		}
		l.rtt += (took - l.rtt) / 8
		l.measured = 0
	}
	if l.rtt != 0 { // without a measurement keep the long wait (RFC 6298 section 5)
		l.wait = l.firstWait()
	}
	l.tries, l.counted = 0, now
	l.again = now + l.wait
	if s > l.notReadyAt {
		l.notReadyTries = 0
	}
}

// notReady records that the receiver of the packet s was not ready. It returns false if no retries are
// left.
func (l *loss) notReady(now clock.Time, s Sequence, pause clock.Time, tries int) bool {
	if s != l.notReadyAt {
		l.notReadyAt, l.notReadyTries = s, 0
	}
	if tries != NoLimit && l.notReadyTries >= tries {
		return false
	}
	l.notReadyTries++
	l.pause = now + pause
	l.tries, l.counted = 0, l.pause
	l.wait = l.firstWait()
	l.again = l.pause + l.wait
	return true
}

// goBack makes everything unacknowledged be sent again.
func (r *Requester) goBack() {
	r.next, r.reads, r.unasked = r.acked, 0, 0
	r.loss.measured, r.loss.missed, r.loss.asking = 0, false, false
}

// ask goes back after a time-out; then only one request is sent until it is answered.
func (r *Requester) ask() {
	if !r.loss.asking {
		r.window.save()
	}
	r.window.lost(r.acked, r.sent)
	r.goBack()
	r.loss.asking, r.loss.asked = true, 0
}

// asks reports whether nothing else may be sent before that request is answered.
func (l *loss) asks(acked Sequence) bool { return l.asking && acked < l.asked }

// answered records that the peer has everything before s, by its answer to the request after a time-out.
func (r *Requester) answered(s Sequence) {
	if s > r.next || s == r.sent { // packets not sent again yet are answered too, or there were no others
		r.loss.asking = false
		r.window.restore()
	} else if s == r.next {
		r.loss.missed = true
	}
}

// gap goes back for an answer that later answers have overtaken: it is lost, unless the later ones were
// sent before we last went back.
func (r *Requester) gap(now clock.Time) {
	l := &r.loss
	if r.acked < l.wentTo && now < l.went+max(2*l.rtt, leastWait/4) {
		return
	}
	r.Stats.Gaps++
	l.went, l.wentTo = now, r.sent
	r.window.lost(r.acked, r.sent)
	r.goBack()
}

// Deadline returns when to call Tick.
func (r *Requester) Deadline() clock.Time {
	l := &r.loss
	at := clock.Never
	if r.acked < r.sent {
		at = l.again
		if r.cfg.Timeout > 0 {
			at = min(at, l.counted+r.cfg.Timeout)
		}
	}
	if r.next != r.end && l.pause > 0 {
		at = min(at, l.pause)
	}
	return at
}

// Tick handles expired timers. Afterwards Waiting reports whether there is something to send.
func (r *Requester) Tick(now clock.Time) (h Heard) {
	l := &r.loss
	if l.pause > 0 && now >= l.pause {
		l.pause = 0
	}
	if r.acked == r.sent || now < l.pause {
		return h
	}
	if r.cfg.Timeout > 0 && now-l.counted >= r.cfg.Timeout {
		l.counted = now
		l.tries++
		if r.cfg.Retries != NoLimit && l.tries > r.cfg.Retries {
			return Heard{Failure: NoAnswer, Token: r.at(r.acked).token}
		}
	}
	if now >= l.again {
		r.Stats.Timeouts++
		l.wait = min(2*l.wait, clock.Second)
		if r.cfg.Timeout > 0 { // after each counted retry packets are sent once more
			l.wait = min(l.wait, max(r.cfg.Timeout, firstWait))
		}
		l.again = now + l.wait
		r.ask()
	}
	return h
}

// Times returns the measured round-trip time, 0 if there is none, and the time without an answer after
// which packets are sent again.
func (r *Requester) Times() (roundTrip, wait clock.Time) { return r.loss.rtt, r.loss.wait }
