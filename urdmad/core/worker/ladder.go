package worker

// step is what a worker does between two turns.
type step uint8

const (
	stepTurn  step = iota // go on at once
	stepYield             // give the core away once
	stepSleep             // wait for something to happen
)

// ladder decides the next step from what the last ones were and took. It reads
// no clock.
type ladder struct {
	policy   *Policy
	busyAt   Time // start of the last turn with work
	spinTill Time // no yield before, because the last one met nobody
	hogTill  Time // no yield before, because the last one met a hog, or could not meet the thread that waits
	hogPause Time // how long the next hog is avoided
	nap      Time // length of the next nap
	misses   int  // yields in a row that met nobody, since somebody was seen to want the core
}

func newLadder(p *Policy, now Time) ladder {
	return ladder{policy: p, busyAt: now, hogPause: p.HogPause, nap: p.Nap}
}

// next is asked after each turn: when it began, whether it found work, and
// until when nothing is due. For stepSleep, until is when to wake at the
// latest.
func (l *ladder) next(now Time, busy bool, deadline Time) (do step, until Time) {
	if busy {
		l.busyAt, l.nap = now, l.policy.Nap
		return stepTurn, 0
	}
	if now < l.hogTill {
		if deadline <= now {
			return stepTurn, 0
		}
		return stepSleep, min(deadline, now+l.longest(now))
	}
	if now < l.spinTill {
		return stepTurn, 0
	}
	if now-l.busyAt < l.policy.Yield || deadline-now < l.policy.MinSleep {
		return stepYield, 0
	}
	return stepSleep, min(deadline, now+l.longest(now))
}

// longest is the bound of a sleep.
func (l *ladder) longest(now Time) Time {
	if now-l.busyAt < l.policy.Idle {
		return l.policy.MaxSleep
	}
	return max(l.policy.MaxSleep, l.policy.IdleSleep)
}

// yielded learns from a yield whether the core is shared, and with what kind of thread.
func (l *ladder) yielded(before, after Time) {
	took := after - before
	l.spinTill = 0
	if took < l.policy.Alone {
		l.spinTill = after + l.policy.Spin
	} else {
		l.misses = 0
	}
	if l.policy.Hog == 0 {
		return
	}
	if took > l.policy.Hog {
		l.hogTill = after + l.hogPause
		l.hogPause = min(2*l.hogPause, l.policy.HogPauseMost)
		return
	}
	// One good yield right after the pause may be luck; good ones for as long
	// as the pause lasted are not.
	if after-l.hogTill > l.hogPause {
		l.hogPause = l.policy.HogPause
	}
}

// missed: somebody wants the core and the yield did not give it away. That happens
// within a scheduling group, too: a yield forfeits one slice, and the thread that wants the
// core may have forfeited several more. So the next yields follow at once; if they
// don't meet it either, no yield will, and for a while the worker sleeps as soon as
// it has nothing to do.
func (l *ladder) missed(now Time) {
	l.spinTill = 0
	if l.misses++; l.misses >= l.policy.Misses {
		l.misses = 0
		l.hogTill = max(l.hogTill, now+l.policy.Crowd)
	}
}

// napUntil bounds a sleep from which no port can wake the worker, and makes the
// next such nap longer.
func (l *ladder) napUntil(now, until Time) Time {
	until = min(until, now+l.nap)
	l.nap = min(2*l.nap, l.policy.NapMost)
	return until
}
