package control_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control"
	"urdma/verbs/abi"
)

// TestLinkChanged: every context is told of each change of its link, in their order, but
// not all of them in one turn.
func TestLinkChanged(t *testing.T) {
	const contexts = 2*control.LinkEventsPerTurn + 10
	r := start(t)
	c, err := dial(r.socket)
	if err != nil {
		t.Fatal(err)
	}
	if !exchange(c.conn, hello(), []int{open(t, "/proc/self/mem")}) {
		t.Fatal("urdmad hung up")
	}
	var sockets []unix.PollFd
	for range contexts {
		_, events := c.withSocket(t, request(abi.OpenDevice, 0))
		sockets = append(sockets, unix.PollFd{Fd: int32(events), Events: unix.POLLIN})
	}
	told := make(chan int)
	r.server.Workers[0].Engine.Do(func() { // the changes, and what the first turn has told of them
		r.server.LinkChanged(0, false)
		r.server.LinkChanged(0, true)
		r.server.Workers[0].Engine.Do(func() {
			n, _ := unix.Poll(sockets, 0)
			told <- n
		})
	})
	r.server.Workers[0].Wake()
	if n := <-told; n != control.LinkEventsPerTurn {
		t.Errorf("%d contexts were told in one turn", n)
	}
	for i := range sockets {
		for _, want := range []uint32{abi.EventPortErr, abi.EventPortActive} {
			b := heard(t, int(sockets[i].Fd))
			if ev, ok := abi.Decode[abi.AsyncEvent](b); !ok || ev.EventType != want {
				t.Fatalf("context %d: event %+v of %d bytes, expected %d", i, ev, len(b), want)
			}
		}
	}
}
