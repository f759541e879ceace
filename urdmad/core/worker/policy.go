package worker

import (
	"errors"
	"fmt"

	"urdma/urdmad/core/clock"
)

// Time is nanoseconds of the worker's monotonic clock, CLOCK_MONOTONIC.
type Time = clock.Time

// Policy is how a worker shares its core. DefaultPolicy has values that were measured;
// docs/design/scheduling.md has the reasons.
type Policy struct {
	// Yield is how long after the last work the worker yields its core after each empty turn, before it
	// sleeps.
	Yield Time
	// A yield shorter than Alone let no other thread run: the next one follows after empty turns for Spin.
	Alone, Spin Time
	// A yield longer than Hog ran a program that spins on memory and doesn't yield. For HogPause, doubling
	// up to HogPauseMost while that recurs, the worker sleeps instead of yielding: a wake-up preempts such
	// a program, while a yield waits for the scheduler's tick.
	Hog, HogPause, HogPauseMost Time
	// Crowd is how long the worker sleeps instead of yielding after Misses consecutive yields let no other
	// thread run although one wants the core.
	Crowd  Time
	Misses int
	// MinSleep is the duration of falling asleep and waking up: the worker stays awake for nearer
	// deadlines.
	MinSleep Time
	// MaxSleep bounds every sleep, so that a watchdog sees that the worker is alive. After Idle without
	// work, IdleSleep is the bound if it is longer, and such a sleep releases the P: otherwise Go's monitor
	// interrupts the sleep some 40 times a second. The first message afterwards takes 30 µs longer.
	MaxSleep, Idle, IdleSleep Time
	// Nap is the length of the first sleep if a port has no interrupt; it doubles up to NapMost.
	Nap, NapMost Time
	// SleepSlice is the EEVDF slice requested while sleeping (see sched_setattr(2), Linux 6.12; 0 leaves it
	// unchanged). With a short slice the wake-up preempts. The normal slice is restored before the next
	// yield: a yield forfeits a slice, so with a short one the core would return to the yielding thread.
	SleepSlice Time
	// Nice applies for the whole life of the thread; 0 leaves it as inherited.
	Nice int
	// Core is the core to which the thread is pinned; negative: not pinned.
	Core int
}

// DefaultPolicy returns the policy that was measured for a machine with few cores. With it, a
// client and a daemon with a core each took 0.12 µs per hop; more than two cores have not been tested.
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

// ErrPolicy is wrapped by every error about a Policy.
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
	case p.Yield < 0 || p.Spin < 0 || p.Alone < 0 || p.Hog < 0 || p.Crowd < 0 || p.MinSleep < 0 ||
		p.SleepSlice < 0 || p.Idle < 0 || p.IdleSleep < 0:
		return fmt.Errorf("%w: a duration is negative", ErrPolicy)
	case p.Nice < -20 || p.Nice > 19:
		return fmt.Errorf("%w: Nice is %d; expected -20 to 19", ErrPolicy, p.Nice)
	}
	return nil
}
