// Package pingpong detects that two programs answer each other's messages at once (Linux's TCP calls that
// pingpong mode). While they do, an acknowledgement, or the completion of a message, is delayed for a
// moment until the answer and delivered together with it. A program that gets the completion first often
// spins on memory for the answer and never yields; a program that still waits for the completion polls, and
// polling yields. If programs and workers share cores, the delay halves the switches between them
// (docs/design/scheduling.md has the numbers).
package pingpong

import "urdma/urdmad/core/clock"

const (
	toBegin = 4 // consecutive quick answers that begin delaying
	toEnd   = 2 // consecutive delays without an answer that end it
)

// Detector measures how soon messages of one direction are answered by messages of the other. The zero
// Detector has seen none.
type Detector struct {
	Delay clock.Time // longest time of a quick answer, and so the longest delay

	on       bool
	asked    bool // a message sent at askedAt is not answered yet
	askedAt  clock.Time
	quick    int // consecutive quick answers
	needless int // consecutive needless delays, while on
}

// On reports whether acknowledgements or completions should be delayed.
func (d *Detector) On() bool { return d.on }

// Asked records a message that may be answered.
func (d *Detector) Asked(now clock.Time) {
	if d.asked && now-d.askedAt <= d.Delay {
		return
	}
	if d.asked {
		d.quick = 0 // the last message was not answered
	}
	d.asked, d.askedAt = true, now
}

// Answered records a message in the other direction. It reports whether delaying begins.
func (d *Detector) Answered(now clock.Time) (begins bool) {
	if !d.asked {
		return false
	}
	d.asked = false
	if now-d.askedAt > d.Delay {
		d.quick = 0
		return false
	}
	if d.quick++; d.on || d.quick < toBegin {
		return false
	}
	d.on, d.needless = true, 0
	return true
}

// Useful records that a delay ended with an answer.
func (d *Detector) Useful() { d.needless = 0 }

// Needless records that a delay ended without an answer. Delaying ends after two such delays in a row.
func (d *Detector) Needless() {
	if d.needless++; d.needless >= toEnd {
		d.on, d.quick = false, 0
	}
}
