package control_test

import (
	"testing"
	"time"

	"urdma/urdmad/control"
	"urdma/verbs/abi"
)

// TestCleanUpInParts: no turn removes more than a part of what a client had that has
// gone, and all of it is removed.
func TestCleanUpInParts(t *testing.T) {
	r, c := startEquipped(t)
	for range 5 * control.RemovedPerTurn {
		if _, err := call[abi.HandleMessage, abi.HandleMessage](c, abi.AllocPD, abi.HandleMessage{Handle: 1}); err != nil {
			t.Fatal(err)
		}
	}
	before, most, gone := 0, 0, make(chan struct{})
	var look func()
	look = func() {
		now := r.server.Objects()
		most = max(most, before-now)
		if before = now; now == 0 {
			close(gone)
			return
		}
		r.server.Engine.Do(look)
	}
	r.server.Engine.Do(look)
	r.server.Wake()
	c.conn.Close()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal("the client does not go")
	}
	if most > control.RemovedPerTurn {
		t.Errorf("a turn removed %d objects", most)
	}
}
