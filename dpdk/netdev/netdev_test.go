package netdev

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestState(t *testing.T) {
	want, err := net.InterfaceByName("lo")
	if err != nil {
		t.Skipf("SKIPPED: no interface lo: %v", err)
	}
	lo, err := ByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	defer lo.Close()
	s, err := lo.State()
	if err != nil || s.Name != "lo" || s.MTU != want.MTU || s.Gone || s.Up != (want.Flags&net.FlagRunning != 0) {
		t.Errorf("%+v, %v; want %+v", s, err, want)
	}
}

func TestNoSuchInterface(t *testing.T) {
	for _, name := range []string{"nosuch0", "", strings.Repeat("x", 15), strings.Repeat("x", 300), "lo\x00", "l/o"} {
		if i, err := ByName(name); !errors.Is(err, unix.ENODEV) {
			t.Errorf("%q: %v, %v", name, i, err)
		}
	}
	i, err := ByIndex(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	if s, err := i.State(); err != nil || !s.Gone || s.Up {
		t.Errorf("%+v, %v", s, err)
	}
	if err := i.SetMTU(1500); !errors.Is(err, unix.ENODEV) {
		t.Errorf("SetMTU: %v", err)
	}
}

// TestWatchEnds: Watch ends by stop at any time, and by itself if the interface is gone.
func TestWatchEnds(t *testing.T) {
	for _, index := range []uint32{1, 1 << 30} {
		i, err := ByIndex(index)
		if err != nil {
			t.Fatal(err)
		}
		states := make(chan State, 16)
		stop, err := i.Watch(func(s State) { states <- s })
		if err != nil {
			t.Fatal(err)
		}
		select {
		case s := <-states:
			if s.Gone != (index != 1) {
				t.Errorf("%d: %+v", index, s)
			}
		case <-time.After(time.Minute):
			t.Errorf("%d: no state at the beginning", index)
		}
		stop()
		i.Close()
	}
}
