package trp

import (
	"testing"

	"urdma/urdmad/core/clock"
)

// TestConversations: whoever converses, gives way to others that do, not to itself.
func TestConversations(t *testing.T) {
	var v conversations
	beside := func(number uint16, at int64, want bool) {
		t.Helper()
		if got := v.beside(number, conversationPause*100+conversationPause/10*clock.Time(at)); got != want {
			t.Errorf("beside %d at %d: %v", number, at, got)
		}
	}
	note := func(number uint16, at int64) {
		v.note(number, conversationPause*100+conversationPause/10*clock.Time(at))
	}
	beside(1, 0, false)
	note(2, 0)
	note(2, 1)
	beside(1, 1, true)
	beside(2, 1, false)
	note(1, 2)
	beside(1, 2, true)
	beside(2, 2, true)
	beside(3, 2, true)
	note(1, 8)
	beside(1, 12, false) // the other has been silent
	beside(2, 12, true)
	beside(3, 12, true)
	beside(3, 18, false)
}
