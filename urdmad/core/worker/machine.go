package worker

import "urdma/urdmad/core/clock"

// Machine has the durations of yields and sleeps on this machine, from Measure. A zero time was not
// measured.
type Machine struct {
	Clock Time // reading the clock
	Yield Time // a yield that let no other thread run, including two readings of the clock
	Sleep Time // a sleep of 1 ns
	Wake  Time // from a write to an eventfd until the thread that waits for it runs
	// KeepsCore: a thread that has just slept keeps its core however often it yields. Linux before 6.6
	// (CFS) owes it run time, and runs it first.
	KeepsCore bool
}

// DefaultPolicy and urdma.json's defaults assume that a yield which lets no other thread run takes at most
// half of Alone, and a sleep at most twice MinSleep. If they take longer, these are the ratios of the
// limits to them.
const (
	aloneOfYield = 3  // about the shortest duration of a yield that lets another thread run
	yieldOfSleep = 10 // for Yield and Crowd
)

// Longer durations were caused by another thread that had the core.
const (
	longestYield = 10 * clock.Microsecond
	longestSleep = 500 * clock.Microsecond
)

// On returns the policy adapted to m: with longer limits if m is slow, and with fewer failed yields before
// a sleep if yields never run a waiting thread.
func (p Policy) On(m Machine) Policy {
	if yield := min(m.Yield, longestYield); 2*yield > p.Alone {
		p.Alone = aloneOfYield * yield
	}
	if sleep := min(max(m.Sleep, m.Wake), longestSleep); sleep > 2*p.MinSleep {
		p.MinSleep = sleep
		p.Yield = max(p.Yield, yieldOfSleep*sleep)
		p.Crowd = max(p.Crowd, yieldOfSleep*sleep)
	}
	if m.KeepsCore {
		p.Misses = min(p.Misses, 1)
	}
	return p
}
