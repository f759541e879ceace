package worker

import (
	"time"

	"golang.org/x/sys/unix"
)

// begin is the process's start on CLOCK_MONOTONIC, the clock of completion timestamps; started is the same
// moment in package time. time.Since of a value with a monotonic reading only reads that clock, through the
// vDSO.
var begin, started = monotonic(), time.Now()

func monotonic() Time {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0 // can't happen: Linux always has this clock
	}
	return Time(t.Nano())
}

// Now returns the time of CLOCK_MONOTONIC, which turns get as now.
func Now() Time { return begin + Time(time.Since(started)) }
