package ancillary

import (
	"os"
	"testing"
	"time"
)

// TestCloserCatchesUp: a user whose descriptors are being closed, if late, gets more
// in; one of whom none can be closed doesn't.
func TestCloserCatchesUp(t *testing.T) {
	c, room := Closer{busy: true}, make(chan bool) // as if one of them could not be closed yet
	for range MaxUnclosed {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		c.Close(f)
	}
	if c.Room(10 * time.Millisecond) {
		t.Error("room for more")
	}
	go func() { room <- c.Room(time.Minute) }()
	select {
	case <-room:
		t.Error("did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	go c.run()
	if !<-room {
		t.Error("no room although all were closed")
	}
}
