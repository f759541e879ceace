package ancillary

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/ancillary/ancillarytest"
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

// TestUnlisten: a listener is closed without the descriptors that were sent over a connection which nobody has accepted.
func TestUnlisten(t *testing.T) {
	at := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "socket"), Net: "unixpacket"}
	l, err := net.ListenUnix("unixpacket", at)
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.DialUnix("unixpacket", nil, at)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := client.File()
	if err != nil {
		t.Fatal(err)
	}
	ancillarytest.Send(t, int(raw.Fd()), ancillarytest.SlowToClose(t))
	raw.Close()
	client.Close()
	closed := make(chan error)
	go func() { closed <- (&Closer{}).Unlisten(l) }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the listener is not closed")
	}
	if err := unix.Access(at.Name, unix.F_OK); err == nil {
		t.Error("the socket's file is left")
	}
}

// TestManyClosers: closes of any number of users take a bounded number of threads, and each gets its turn.
func TestManyClosers(t *testing.T) {
	all := make([]Closer, 2*maxClosing)
	x := slowClose{begun: make(chan struct{}, len(all)), end: make(chan struct{})}
	for i := range all {
		all[i].Close(x)
	}
	for range maxClosing {
		<-x.begun
	}
	time.Sleep(20 * time.Millisecond)
	if n := len(x.begun); n > 0 {
		t.Errorf("%d more closes have begun than may", n)
	}
	close(x.end)
	for range maxClosing {
		<-x.begun
	}
}

// slowClose says when its close begins, which ends with the channel end.
type slowClose struct{ begun, end chan struct{} }

func (x slowClose) Close() error {
	x.begun <- struct{}{}
	<-x.end
	return nil
}
