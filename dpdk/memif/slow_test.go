package memif

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"urdma/ancillary/ancillarytest"
)

// sendSlow sends a message with a descriptor whose last close waits until the test ends.
func (r *rawPeer) sendSlow(m message) {
	r.t.Helper()
	sendSlow(r.t, r.ctl.conn, m[:])
}

func sendSlow(t *testing.T, to *net.UnixConn, message []byte) {
	t.Helper()
	raw, err := to.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { ancillarytest.Send(t, int(fd), ancillarytest.SlowToClose(t), message...) })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ends checks that a call returns.
func ends(t *testing.T, what string, call func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		call()
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatalf("%s hangs", what)
	}
}

// TestSlowDescriptors: descriptors that take long to close stop neither the port, nor another one of the same socket,
// nor the end of both.
func TestSlowDescriptors(t *testing.T) {
	p, path := openServer(t)
	other := mustOpen(t, Options{Name: "other", SocketPath: path, Server: true, ID: 1})
	in := initMsg{version: version, name: "raw"}.encode()
	for _, do := range []func(r *rawPeer){
		func(r *rawPeer) { r.sendSlow(in) },
		func(r *rawPeer) { r.must(in, -1, kindAck); r.sendSlow(addRegion{0, 4096}.encode()) },
		func(r *rawPeer) { r.must(in, -1, kindAck); r.sendSlow(rawRing(0, 0).encode()) },
		func(r *rawPeer) { r.sendSlow(message{}); r.sendSlow(message{}) },
		func(r *rawPeer) { r.offerAll(1); r.sendSlow(newMessage(kindAck)) },
	} {
		r := dialRaw(t, path)
		do(r)
		r.close()
		ends(t, "the connection", func() {
			for p.busy.Load() {
				time.Sleep(time.Millisecond)
			}
		})
	}
	stillServes(t, p, path)
	ends(t, "Close", func() { p.Close() })
	waitLink(t, true, other, mustOpen(t, Options{Name: "its client", SocketPath: path, ID: 1}))
	ends(t, "Close of the socket's last port", func() { other.Close() })
}

// TestSlowRefusal: descriptors on a connection that is refused do not keep others from being accepted.
func TestSlowRefusal(t *testing.T) {
	p, path := openServer(t)
	var open []*rawPeer
	for range maxOpen {
		open = append(open, dialRaw(t, path))
	}
	p.listener.mu.Lock() // so that it is refused later
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	sendSlow(t, conn, []byte{1})
	p.listener.mu.Unlock()
	_, _ = conn.Read(make([]byte, 1)) // until it is refused
	conn.Close()
	for _, r := range open {
		r.close()
	}
	stillServes(t, p, path)
}

// TestSlowServer: descriptors of a server do not stop a client.
func TestSlowServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.sock")
	ln := serveRaw(t, path)
	p := mustOpen(t, Options{Name: "victim", SocketPath: path})
	slow := rawServer{distort: func(r *rawPeer) { r.sendSlow(newMessage(kindAck)) }}
	slow.talk(t, ln).close()
	r, _ := rawServer{}.accept(t, ln)
	defer r.close()
	waitLink(t, true, p)
	ends(t, "Close", func() { p.Close() })
}
