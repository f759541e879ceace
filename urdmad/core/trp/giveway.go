package trp

import "urdma/urdmad/core/clock"

// lightSenders has the last two connections of a port that sent single segments in quick succession, each
// with nothing else outstanding. Such a segment waits behind all segments of other connections in the
// port's ring or queue, so those connections reduce their windows (give way).
type lightSenders struct{ last, before lightSender }

type lightSender struct {
	number uint16 // our UDP port number
	at     clock.Time
}

// lightPause is the longest time between single segments of a light sender, and the time for which other
// connections give way after one.
const lightPause = 10 * clock.Millisecond

// note records that a light sender sent a segment.
func (v *lightSenders) note(number uint16, now clock.Time) {
	if v.last.number != number {
		v.before = v.last
	}
	v.last = lightSender{number, now}
}

// other reports whether there is a light sender apart from the connection with that port number.
func (v *lightSenders) other(number uint16, now clock.Time) bool {
	other := v.last
	if other.number == number {
		other = v.before
	}
	return other.number != 0 && now-other.at < lightPause
}

// singleSegment has the time at which a connection last sent a segment with no other outstanding or ready.
type singleSegment struct{ at clock.Time }

// sent records a single segment; two within lightPause make the connection a light sender.
func (l *singleSegment) sent(v *lightSenders, number uint16, now clock.Time) {
	if now-l.at < lightPause {
		v.note(number, now)
	}
	l.at = now
}
