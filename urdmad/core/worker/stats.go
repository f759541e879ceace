package worker

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Stats is a snapshot of a worker's counters since its start.
type Stats struct {
	Turns       uint64 `counter:"turns"`
	BusyTurns   uint64 `counter:"busy_turns"`
	Yields      uint64 `counter:"yields"`
	Sleeps      uint64 `counter:"sleeps"`
	Hogs        uint64 `counter:"hogs"`  // yields that ran a program which does not yield the core
	Wakes       uint64 `counter:"wakes"` // sleeps ended by Wake, a kick or a port rather than by time
	AsleepNs    uint64 `counter:"asleep_ns"`
	YieldedNs   uint64 `counter:"yielded_ns"`
	LongestGap  Time   `counter:"longest_gap_ns"` // between the starts of two turns without a yield or sleep
	MinorFaults uint64 `counter:"minor_faults"`   // first accesses to pages, or to pages that a client had removed
	MajorFaults uint64 `counter:"major_faults"`   // accesses that waited for swapped-out pages
}

// counters is the worker's own copy, in plain memory; publish makes it visible to others.
type counters struct {
	now    Stats
	shown  [11]atomic.Uint64
	lastAt Time // start of the last turn, 0 after a yield or sleep
}

func (c *counters) turn(now Time, busy bool) {
	c.now.Turns++
	if busy {
		c.now.BusyTurns++
	}
	if c.lastAt != 0 && now-c.lastAt > c.now.LongestGap {
		c.now.LongestGap = now - c.lastAt
	}
	c.lastAt = now
	if c.now.Turns%1024 == 0 {
		c.publish()
	}
}

func (c *counters) yielded(took Time, hog bool) {
	c.now.Yields++
	c.now.YieldedNs += uint64(took)
	if hog {
		c.now.Hogs++
	}
	c.lastAt = 0
}

func (c *counters) slept(took Time, woken bool) {
	c.now.Sleeps++
	c.now.AsleepNs += uint64(took)
	if woken {
		c.now.Wakes++
	}
	c.lastAt = 0
}

func (c *counters) publish() {
	s := &c.now
	s.MinorFaults, s.MajorFaults = faults()
	for i, v := range [...]uint64{s.Turns, s.BusyTurns, s.Yields, s.Sleeps, s.Hogs, s.Wakes,
		s.AsleepNs, s.YieldedNs, uint64(s.LongestGap), s.MinorFaults, s.MajorFaults} {
		c.shown[i].Store(v)
	}
}

func (c *counters) snapshot() Stats {
	v := func(i int) uint64 { return c.shown[i].Load() }
	return Stats{Turns: v(0), BusyTurns: v(1), Yields: v(2), Sleeps: v(3), Hogs: v(4), Wakes: v(5),
		AsleepNs: v(6), YieldedNs: v(7), LongestGap: Time(v(8)), MinorFaults: v(9), MajorFaults: v(10)}
}

// faults returns how many page faults the calling thread has had. It takes less than a microsecond, so it
// is called when counters are published rather than in each turn.
func faults() (minor, major uint64) {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &r) != nil {
		return 0, 0
	}
	return uint64(r.Minflt), uint64(r.Majflt)
}
