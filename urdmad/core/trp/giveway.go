package trp

import "urdma/urdmad/core/clock"

// lightSenders are the connections of a port that lately sent single segments: one soon after
// another, each with nothing else under way. Such a segment waits behind all that others have in
// the port's ring or queue, so those give way.
type lightSenders struct{ last, before lightSender }

type lightSender struct {
	number uint16 // our UDP port number
	at     clock.Time
}

// lightPause is how far apart single segments are at most, and how long others give way after one.
const lightPause = 10 * clock.Millisecond

// note takes a single segment.
func (v *lightSenders) note(number uint16, now clock.Time) {
	if v.last.number != number {
		v.before = v.last
	}
	v.last = lightSender{number, now}
}

// other reports whether there is one beside the connection of that number.
func (v *lightSenders) other(number uint16, now clock.Time) bool {
	other := v.last
	if other.number == number {
		other = v.before
	}
	return other.number != 0 && now-other.at < lightPause
}

// singleSegment is when a connection last sent a segment with no other under way or ready.
type singleSegment struct{ at clock.Time }

// sent takes another; two within the pause make a light sender.
func (l *singleSegment) sent(v *lightSenders, number uint16, now clock.Time) {
	if now-l.at < lightPause {
		v.note(number, now)
	}
	l.at = now
}
