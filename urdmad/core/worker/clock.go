package worker

import (
	"time"

	"golang.org/x/sys/unix"
)

// begin is when the process started on CLOCK_MONOTONIC, by which programs are told the
// times of completions, and started the same to package time. time.Since of a value with
// a monotonic reading only reads that clock, through the vDSO.
var begin, started = monotonic(), time.Now()

func monotonic() Time {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0 // Linux always has it
	}
	return Time(t.Nano())
}

// Now is the time on the clock that turns are given: CLOCK_MONOTONIC.
func Now() Time { return begin + Time(time.Since(started)) }
