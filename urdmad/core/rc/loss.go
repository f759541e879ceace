package rc

import "urdma/urdmad/core/clock"

// loss is what a requester knows of time: when nothing was heard for how long, and
// until when it must not send.
//
// The time-out of the queue pair says how often to count a try. A lost last packet
// draws no NAK, so it is sent again sooner, after a few round trips, without counting.
type loss struct {
	pause         clock.Time // nothing is sent before: the receiver was not ready
	again         clock.Time // when what is under way is sent again; Never: nothing is
	wait          clock.Time // how long was waited for that; it doubles
	counted       clock.Time // when the last try was counted, or something was heard
	tries         int
	notReadyAt    Sequence // the packet that found its receiver not ready
	notReadyTries int
	went          clock.Time // when we last went back for an answer that is missing
	wentTo        Sequence   // what was under way then ends here

	missed bool // the peer's NAK has us go back, not a time-out

	// After a time-out one request leaves, to learn what the peer has: it may have all, and
	// be late.
	asking bool
	asked  Sequence // the end of that request; 0: it has not left

	rtt       clock.Time // smoothed; 0: nothing was measured
	measured  Sequence   // answered, it gives the time of a round trip; 0: none does
	measuring clock.Time
}

const (
	firstWait = 20 * clock.Millisecond // before a round trip was measured
	leastWait = 4 * clock.Millisecond  // peers are processes, which may not run for a while
)

func (l *loss) init() { *l = loss{again: clock.Never} }

// begin: something is under way from now on.
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

// measure has the answer to a packet that ends at s measured.
func (l *loss) measure(s Sequence, now clock.Time) {
	if l.measured == 0 {
		l.measured, l.measuring = s, now
	}
}

// progress: all before s has arrived.
func (l *loss) progress(now clock.Time, s Sequence) {
	if l.measured != 0 && s >= l.measured {
		took := max(now-l.measuring, 1)
		if l.rtt == 0 {
			l.rtt = took
		}
		l.rtt += (took - l.rtt) / 8
		l.measured = 0
	}
	if l.rtt != 0 { // before, what is sent again too early would never be measured (RFC 6298 section 5)
		l.wait = l.firstWait()
	}
	l.tries, l.counted = 0, now
	l.again = now + l.wait
	if s > l.notReadyAt {
		l.notReadyTries = 0
	}
}

// notReady: the receiver of the packet s was not ready. False: the tries are used up.
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

// goBack has everything that is not acknowledged sent again.
func (r *Requester) goBack() {
	r.next, r.reads, r.unasked = r.acked, 0, 0
	r.loss.measured, r.loss.missed, r.loss.asking = 0, false, false
}

// ask goes back after a time-out, for one request until it is answered.
func (r *Requester) ask() {
	if !r.loss.asking {
		r.window.save()
	}
	r.window.lost(r.acked, r.sent)
	r.goBack()
	r.loss.asking, r.loss.asked = true, 0
}

// asks reports whether nothing else leaves before that request is answered.
func (l *loss) asks(acked Sequence) bool { return l.asking && acked < l.asked }

// answered: the peer has all before s, as it says when it is asked after a time-out.
func (r *Requester) answered(s Sequence) {
	if s > r.next || s == r.sent { // also what has not been sent again, or there was no more
		r.loss.asking = false
		r.window.restore()
	} else if s == r.next {
		r.loss.missed = true
	}
}

// gap goes back for an answer that others have overtaken: it is lost, unless those were
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

// Deadline is when to call Tick.
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

// Tick looks at what is due; Waiting says then whether there is something to be sent.
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
		if r.cfg.Timeout > 0 { // each try is one to be sent in
			l.wait = min(l.wait, max(r.cfg.Timeout, firstWait))
		}
		l.again = now + l.wait
		r.ask()
	}
	return h
}

// Times are a round trip as it was measured, 0 if none was, and how long an answer is
// waited for before packets are sent again.
func (r *Requester) Times() (roundTrip, wait clock.Time) { return r.loss.rtt, r.loss.wait }
