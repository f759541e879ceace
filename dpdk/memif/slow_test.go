package memif

import (
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/ancillary/ancillarytest"
)

// offerSockets is offerAll of a client whose interrupts are sockets, and returns its ends of them.
func (r *rawPeer) offerSockets() (ends [2]int) {
	r.t.Helper()
	r.rawRegion(rawSize())
	r.must(initMsg{version: version, name: "raw"}.encode(), -1, kindAck)
	r.must(addRegion{0, uint64(len(r.mem))}.encode(), r.fd, kindAck)
	for flags := range uint16(2) {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			r.t.Fatal(err)
		}
		r.others = append(r.others, p[0])
		r.must(rawRing(flags, 0).encode(), p[1], kindAck)
		unix.Close(p[1])
		ends[flags] = p[0]
	}
	r.must(connectMsg(kindConnect, "raw"), -1, kindConnected)
	return ends
}

// TestSlowDescriptors: descriptors that a peer sends over its interrupts, and that take long to close, end its link and
// delay nobody.
func TestSlowDescriptors(t *testing.T) {
	slow := func(t *testing.T, ends [2]int) {
		for _, end := range ends {
			ancillarytest.Send(t, end, ancillarytest.SlowToClose(t))
		}
	}
	t.Run("of a client", func(t *testing.T) {
		p, path := openServer(t)
		r := dialRaw(t, path)
		ends := r.offerSockets()
		waitLink(t, true, p)
		slow(t, ends)
		ended(t, p)
		r.close()
		stillServes(t, p, path)
	})
	t.Run("of a server", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "m.sock")
		ln := serveRaw(t, path)
		defer ln.Close()
		p := mustOpen(t, Options{Name: "victim", SocketPath: path, Queues: 1, Ring: ringOf})
		r, _ := rawServer{}.accept(t, ln)
		waitLink(t, true, p)
		slow(t, [2]int{r.c2sInt, r.s2cInt})
		ended(t, p)
		r.close()
		again, _ := rawServer{}.accept(t, ln)
		defer again.close()
		waitLink(t, true, p)
	})
}

// ended lets a port take turns until its link is down and left.
func ended(t *testing.T, p tested) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for p.Link() {
			turn(p)
		}
		turn(p)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the worker waits for its peer")
	}
	if s := p.Stats(); s.RxErrors == 0 {
		t.Errorf("no error was counted: %+v", s)
	}
}
