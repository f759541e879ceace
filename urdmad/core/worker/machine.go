package worker

import "urdma/urdmad/core/clock"

// Machine is what giving a core away and sleeping come to on this machine, as
// Measure found it. Zero times were not found.
type Machine struct {
	Clock Time // a reading of the clock
	Yield Time // a yield that let nobody else run, the clock read before and after
	Sleep Time // a sleep of 1 ns
	Wake  Time // from a write to an eventfd until the thread that waits for it runs
	// KeepsCore: a thread that comes from a sleep keeps its core however often it
	// yields. Linux before 6.6 (CFS) owes it time, and lets it have that first.
	KeepsCore bool
}

// What DefaultPolicy and urdma.json's defaults suppose: that a yield which let
// nobody run is at most half of Alone, and a sleep at most twice MinSleep. Where
// they are longer, these are the proportions that the limits keep to them.
const (
	aloneOfYield = 3  // the least of a yield that lets somebody run is about as much
	yieldOfSleep = 10 // Yield and Crowd
)

// What is longer was not the machine but somebody who had the core.
const (
	longestYield = 10 * clock.Microsecond
	longestSleep = 500 * clock.Microsecond
)

// On is the policy with its limits made longer where m is slow, and fewer vain
// yields beside somebody who wants the core where none will ever meet him.
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
