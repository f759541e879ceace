// Package pingpong notices that two programs answer each other's messages at once (TCP of Linux
// calls that pingpong mode). While they do, an acknowledgement, or the completion of a message,
// waits a moment for the answer and arrives along with it. A program that has the completion
// first often spins on memory for the answer and never yields; one that still waits for the
// completion polls, and polling yields. Where programs and workers share cores, that halves the
// switches between them (bench/floor has the numbers).
package pingpong

import "urdma/urdmad/core/clock"

const (
	toBegin = 4 // quick answers in a row
	toEnd   = 2 // waits in a row that no answer ended
)

// Detector learns how soon messages of one direction are answered by messages of the other. The
// zero Detector has seen none.
type Detector struct {
	Delay clock.Time // how long a quick answer takes at most, and so how long something may wait

	on       bool
	asked    bool // by a message at askedAt, which no other has answered yet
	askedAt  clock.Time
	quick    int // answers in a row
	needless int // waits in a row, while on
}

// On reports whether something should wait for an answer.
func (d *Detector) On() bool { return d.on }

// Asked notes a message that may be answered.
func (d *Detector) Asked(now clock.Time) {
	if d.asked && now-d.askedAt <= d.Delay {
		return
	}
	if d.asked {
		d.quick = 0 // nobody has answered the last
	}
	d.asked, d.askedAt = true, now
}

// Answered notes a message in the other direction. It reports whether waiting begins.
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

// Useful notes that something has waited, and an answer came.
func (d *Detector) Useful() { d.needless = 0 }

// Needless notes that something has waited, and no answer came. Waiting ends if that happens again.
func (d *Detector) Needless() {
	if d.needless++; d.needless >= toEnd {
		d.on, d.quick = false, 0
	}
}
