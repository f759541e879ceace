package worker

// step is the action of a worker between two turns.
type step uint8

const (
	stepTurn  step = iota // continue at once
	stepYield             // yield the core once
	stepSleep             // wait for an event
)

// ladder decides the next step from the results and durations of the last ones. It reads no clock.
type ladder struct {
	policy   *Policy
	busyAt   Time // start of the last turn with work
	spinTill Time // no yield before this time, because the last one let no other thread run
	hogTill  Time // no yield before this time, because the last one met a hog, or did not run the waiting thread
	hogPause Time // how long to avoid the next hog
	nap      Time // length of the next nap
	misses   int  // consecutive yields that let no other thread run although one wants the core
}

func newLadder(p *Policy, now Time) ladder {
	return ladder{policy: p, busyAt: now, hogPause: p.HogPause, nap: p.Nap}
}

// next is called after each turn with its start, whether it found work, and the deadline until which
// nothing is due. For stepSleep, until is the latest time to wake up.
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

// longest returns the greatest end of a sleep.
func (l *ladder) longest(now Time) Time {
	if now-l.busyAt < l.policy.Idle {
		return l.policy.MaxSleep
	}
	return max(l.policy.MaxSleep, l.policy.IdleSleep)
}

// yielded concludes from a yield's duration whether the core is shared, and with what kind of thread.
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
	// One short yield right after the pause may be chance; if yields are short for as long as the pause
	// lasted, the hog is gone.
	if after-l.hogTill > l.hogPause {
		l.hogPause = l.policy.HogPause
	}
}

// missed records that a thread wants the core and the yield did not run it. That happens within a
// scheduling group, too: a yield forfeits one slice, and the waiting thread may have forfeited several
// more. So the next yields follow at once. If they don't run it either, no yield will, and for a while the
// worker sleeps as soon as it has nothing to do.
func (l *ladder) missed(now Time) {
	l.spinTill = 0
	if l.misses++; l.misses >= l.policy.Misses {
		l.misses = 0
		l.hogTill = max(l.hogTill, now+l.policy.Crowd)
	}
}

// napUntil bounds a sleep from which no port can wake the worker, and makes the next such nap longer.
func (l *ladder) napUntil(now, until Time) Time {
	until = min(until, now+l.nap)
	l.nap = min(2*l.nap, l.policy.NapMost)
	return until
}
