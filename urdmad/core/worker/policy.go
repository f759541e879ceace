package worker

import (
	"errors"
	"fmt"

	"urdma/urdmad/core/clock"
)

// Time is nanoseconds of the worker's monotonic clock, which starts at 0 when
// the process does.
type Time = clock.Time

// Policy says how a worker shares its core. DefaultPolicy has the values that
// bench/floor chose; its README says why.
type Policy struct {
	// Yield is how long after the last work the worker yields its core after
	// each empty turn, before it sleeps.
	Yield Time
	// A yield shorter than Alone met nobody who wants the core: the next one
	// comes after Spin of empty turns.
	Alone, Spin Time
	// A yield longer than Hog met a program that spins on memory and doesn't
	// give the core back. For HogPause, doubling to HogPauseMost while it
	// recurs, the worker sleeps instead of yielding: a wake-up preempts such a
	// program, a yield waits for the scheduler's tick.
	Hog, HogPause, HogPauseMost Time
	// Crowd is how long the worker sleeps instead of yielding after Misses yields in
	// a row met nobody although somebody wants the core.
	Crowd  Time
	Misses int
	// MinSleep is what falling asleep and waking costs: nearer deadlines are
	// waited for awake.
	MinSleep Time
	// MaxSleep bounds every sleep, so that a watchdog sees the worker move. After
	// Idle without work IdleSleep does, if it is longer, and such a sleep lets go of
	// the P: while the worker holds it, Go's monitor interrupts the sleep some 40
	// times a second. The first message afterwards takes 30 µs longer.
	MaxSleep, Idle, IdleSleep Time
	// Nap is the first sleep when a port has no interrupt; it doubles to
	// NapMost.
	Nap, NapMost Time
	// SleepSlice is the EEVDF slice asked for while sleeping (see
	// sched_setattr(2), Linux 6.12; 0 leaves it alone). A short one lets the
	// wake-up preempt. It is given back before the next yield: a yield forfeits
	// a slice, so a short one would return the core to the one who yields.
	SleepSlice Time
	// Slice and Nice hold for the whole life of the thread; 0 leaves them as
	// inherited.
	Slice Time
	Nice  int
	// Core pins the thread; negative leaves it to the kernel.
	Core int
}

// DefaultPolicy is what bench/floor chose for a machine with few cores. A client
// and a daemon with a core each measured 0.12 µs a hop with it; more than two
// cores have not been tried.
func DefaultPolicy() Policy {
	return Policy{
		Yield:        50 * clock.Microsecond,
		Alone:        1 * clock.Microsecond,
		Spin:         2 * clock.Microsecond,
		Hog:          1 * clock.Millisecond,
		HogPause:     1 * clock.Millisecond,
		HogPauseMost: 64 * clock.Millisecond,
		Crowd:        200 * clock.Microsecond,
		Misses:       8,
		MinSleep:     20 * clock.Microsecond,
		MaxSleep:     100 * clock.Millisecond,
		Idle:         100 * clock.Millisecond,
		IdleSleep:    500 * clock.Millisecond,
		Nap:          20 * clock.Microsecond,
		NapMost:      1 * clock.Millisecond,
		SleepSlice:   100 * clock.Microsecond,
		Core:         -1,
	}
}

// ErrPolicy is wrapped by every complaint about a Policy.
var ErrPolicy = errors.New("worker policy")

func (p *Policy) validate() error {
	switch {
	case p.MaxSleep <= 0:
		return fmt.Errorf("%w: MaxSleep is %d ns; it must be positive", ErrPolicy, p.MaxSleep)
	case p.Nap <= 0 || p.NapMost < p.Nap:
		return fmt.Errorf("%w: Nap is %d ns, NapMost %d ns; expected 0 < Nap <= NapMost", ErrPolicy, p.Nap, p.NapMost)
	case p.Hog > 0 && (p.HogPause <= 0 || p.HogPauseMost < p.HogPause):
		return fmt.Errorf("%w: HogPause is %d ns, HogPauseMost %d ns; expected 0 < HogPause <= HogPauseMost",
			ErrPolicy, p.HogPause, p.HogPauseMost)
	case p.Yield < 0 || p.Spin < 0 || p.Alone < 0 || p.Hog < 0 || p.Crowd < 0 || p.MinSleep < 0 || p.Slice < 0 || p.SleepSlice < 0 || p.Idle < 0 || p.IdleSleep < 0:
		return fmt.Errorf("%w: a duration is negative", ErrPolicy)
	case p.Nice < -20 || p.Nice > 19:
		return fmt.Errorf("%w: Nice is %d; expected -20 to 19", ErrPolicy, p.Nice)
	}
	return nil
}
