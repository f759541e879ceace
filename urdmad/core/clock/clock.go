// Package clock has the time that urdmad's packages are given, and timers that run
// by it. It reads no clock: the poll loop reads one, once a turn, and passes the
// time on, so that tests can pass a virtual one.
package clock

import "math"

// Time is a point on, or a distance along, a monotonic clock, in nanoseconds.
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
