// Package clock has the time that urdmad's packages are given, and timers. It reads no clock: the poll loop
// reads one once per turn and passes the time on, so that tests can use a virtual clock.
package clock

import "math"

// Time is a time of a monotonic clock, or a duration, in nanoseconds.
type Time int64

// Never is later than every time.
const Never Time = math.MaxInt64

// Units of Time.
const (
	Microsecond Time = 1000
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Clock is the time of one worker's current turn, and the worker's timers.
type Clock struct {
	Now Time
	Timers
}
