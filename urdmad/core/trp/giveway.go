package trp

import "urdma/urdmad/core/clock"

// conversations are of a port: which connections lately sent one segment after the
// other, each with nothing else under way. Such a segment waits behind all that others
// have in the port's ring or queue.
type conversations struct{ last, before conversation }

type conversation struct {
	number uint16 // our UDP port number
	at     clock.Time
}

// conversationPause is how far apart segments of a conversation are at most, and how
// long others give way to it.
const conversationPause = 10 * clock.Millisecond

// note takes a segment of a conversation.
func (v *conversations) note(number uint16, now clock.Time) {
	if v.last.number != number {
		v.before = v.last
	}
	v.last = conversation{number, now}
}

// beside reports whether a connection other than the one of that number converses.
func (v *conversations) beside(number uint16, now clock.Time) bool {
	other := v.last
	if other.number == number {
		other = v.before
	}
	return other.number != 0 && now-other.at < conversationPause
}

// singleSegment is when a connection last sent a segment with no other under way or ready.
type singleSegment struct{ at clock.Time }

// sent takes another; two within the pause are a conversation.
func (l *singleSegment) sent(v *conversations, number uint16, now clock.Time) {
	if now-l.at < conversationPause {
		v.note(number, now)
	}
	l.at = now
}
