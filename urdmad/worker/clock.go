package worker

import "time"

// started is the zero of every worker's clock. time.Since of a value with a
// monotonic reading only reads the monotonic clock through the vDSO.
var started = time.Now()

// Now is the time on the clock that turns are given.
func Now() Time { return Time(time.Since(started)) }
