package memif

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/dpdk/port"
)

func fdCount(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

// mapCount returns the number of mapped shared regions.
func mapCount(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "memfd:urdma-memif")
}

func sendOne(t *testing.T, from tested, fill byte) {
	t.Helper()
	pk := make([]port.Packet, 1)
	if from.Alloc(pk) != 1 {
		t.Fatal("Alloc gave nothing")
	}
	pk[0].Data = pk[0].Data[:200]
	for i := range pk[0].Data {
		pk[0].Data[i] = fill
	}
	if from.Tx(pk) != 1 {
		t.Fatal("Tx took nothing")
	}
	from.Flush()
}

func recvOne(t *testing.T, to tested) port.Packet {
	t.Helper()
	pk := make([]port.Packet, 1)
	deadline := time.Now().Add(time.Minute)
	for to.Rx(pk) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("nothing arrived")
		}
	}
	return pk[0]
}

// stayWithin waits until at most so many descriptors are open and regions mapped: the control goroutine
// releases them a moment after a link is down.
func stayWithin(t *testing.T, fds, maps int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); fdCount(t) > fds || mapCount(t) > maps; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d descriptors, where %d may be, and %d mappings, where %d may be", fdCount(t), fds, mapCount(t), maps)
		}
	}
}

// TestReconnect closes and reopens each side in turn. Packets held when a link dies stay readable, unsent
// ones can be sent or freed, and nothing is left behind.
func TestReconnect(t *testing.T) {
	for _, victim := range []string{"client", "server"} {
		t.Run(victim+" dies", func(t *testing.T) {
			server, client := openPair(t, nil)
			survivor, other := server, client
			if victim == "server" {
				survivor, other = client, server
			}
			var fds, maps int
			for round := range 12 {
				sendOne(t, other, byte(round))
				held := recvOne(t, survivor)
				unsent := make([]port.Packet, 3)
				if survivor.Alloc(unsent) != 3 {
					t.Fatal("Alloc")
				}
				o := other.opt
				other.Close()
				waitLink(t, false, survivor)
				survivor.Rx(nil)
				if !bytes.Equal(held.Data, bytes.Repeat([]byte{byte(round)}, 200)) {
					t.Fatal("a held packet changed when the peer died")
				}
				for i := range unsent {
					unsent[i].Data = unsent[i].Data[:60]
				}
				if survivor.Tx(unsent[:1]) != 1 {
					t.Fatal("Tx on a dead link took nothing")
				}
				other = mustOpen(t, o)
				waitLink(t, true, survivor, other)
				survivor.Rx(nil)
				if survivor.Tx(unsent[1:2]) != 1 {
					t.Fatal("Tx of an old buffer took nothing")
				}
				survivor.Flush()
				if late := recvOne(t, other); len(late.Data) != 60 {
					t.Fatalf("an old buffer arrived with %d bytes", len(late.Data))
				} else {
					other.Free([]port.Packet{late})
				}
				survivor.Free(unsent[2:])
				survivor.Free([]port.Packet{held})
				if len(survivor.retired) != 0 {
					t.Fatalf("%d dead links keep their memory", len(survivor.retired))
				}
				if round == 1 {
					fds, maps = fdCount(t), mapCount(t)
				}
			}
			stayWithin(t, fds+1, maps)
			if s := survivor.Stats(); s.LinkUps != 13 || s.LinkDowns != 12 || s.TxDropped != 12 {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

// TestIdleWorker: links established and lost while the worker makes no calls are released without it.
func TestIdleWorker(t *testing.T) {
	server, client := openPair(t, nil)
	var fds, maps int
	for round := range 20 {
		o := client.opt
		client.Close()
		waitLink(t, false, server)
		client = mustOpen(t, o)
		waitLink(t, true, server, client)
		if round == 2 {
			fds, maps = fdCount(t), mapCount(t)
		}
	}
	stayWithin(t, fds+1, maps)
	sendOne(t, client, 1)
	server.Free([]port.Packet{recvOne(t, server)})
}

// TestSleeperSeesLinkChange: a worker asleep in ArmRx is woken when the link is lost and when it is
// established, and by frames of the new link.
func TestSleeperSeesLinkChange(t *testing.T) {
	server, client := openPair(t, nil)
	server.Rx(nil)
	server.ArmRx() // consumes the wake-up from the link coming up
	server.DisarmRx()
	fd, armed := server.ArmRx()
	if !armed || pollIn(fd, 0) {
		t.Fatal("not at rest")
	}
	o := client.opt
	client.Close()
	if !pollIn(fd, time.Minute) {
		t.Fatal("asleep while the link went down")
	}
	server.DisarmRx()
	fd, _ = server.ArmRx()
	client = mustOpen(t, o)
	if !pollIn(fd, time.Minute) {
		t.Fatal("asleep while the link came up")
	}
	waitLink(t, true, server, client)
	server.DisarmRx()
	if fd, armed = server.ArmRx(); !armed {
		t.Fatal("not armed")
	}
	sendOne(t, client, 1)
	if !pollIn(fd, time.Minute) {
		t.Fatal("asleep while a frame came on the new link")
	}
	server.DisarmRx()
	server.Free([]port.Packet{recvOne(t, server)})
}

// TestWakeUpBeforeLinkUp: the wake-up for a new link comes before the link is up, not after.
func TestWakeUpBeforeLinkUp(t *testing.T) {
	server, path := openServer(t)
	woken := make(chan bool, 1)
	server.Watch(func(up bool) {
		if up {
			woken <- pollIn(server.wakeFD, 0)
		}
	})
	mustOpen(t, Options{Name: "client", SocketPath: path})
	if !<-woken {
		t.Error("the link is up before the worker is woken")
	}
}

// TestCloseAnswersAtOnce: Close does not wait for a silent peer.
func TestCloseAnswersAtOnce(t *testing.T) {
	var took time.Duration
	for range 5 { // a slow machine may fail sometimes, but not always
		if took = closeBesideSilence(t); took < replyWait {
			return
		}
	}
	t.Errorf("two Closes took %v: they waited for the peer's reply", took)
}

// closeBesideSilence returns how long a client and a server take to close while each waits for a message from
// its peer.
func closeBesideSilence(t *testing.T) time.Duration {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.sock")
	ln := serveRaw(t, path) // its kernel accepts, but it never sends hello
	defer ln.Close()
	c := mustOpen(t, Options{Name: "client", SocketPath: path})
	time.Sleep(20 * time.Millisecond)
	began := time.Now()
	c.Close()
	s, spath := openServer(t)
	r := dialRaw(t, spath) // never sends init
	defer r.close()
	s.Close()
	return time.Since(began)
}

func TestStaleSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.sock")
	ln := serveRaw(t, path)
	if _, err := Open(Options{SocketPath: path, Server: true}); err == nil ||
		!strings.Contains(err.Error(), "answers there already") {
		t.Fatalf("opened over a live server: %v", err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Fatal("no stale socket to try with")
	}
	p := mustOpen(t, Options{SocketPath: path, Server: true})
	stillServes(t, p, path)
	p.Close()
	if _, err := os.Lstat(path); err == nil {
		t.Error("Close left the socket")
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{SocketPath: path, Server: true}); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Fatalf("opened over a file: %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "precious" {
		t.Error("the file is gone")
	}
}

// TestLockedSocket: the lock alone keeps a second server away, even if the socket was removed.
func TestLockedSocket(t *testing.T) {
	p, path := openServer(t)
	l, err := os.OpenFile(path+".lock", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := unix.Flock(int(l.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		t.Fatal("the server holds no lock")
	}
	p.Close()
	if err := unix.Flock(int(l.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatalf("Close left the lock: %v", err)
	}
	if _, err := Open(Options{SocketPath: path, Server: true}); err == nil || !strings.Contains(err.Error(), "lock file") {
		t.Fatalf("opened a locked path: %v", err)
	}
}

func TestTwoIDsOneSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.sock")
	s0 := mustOpen(t, Options{Name: "s0", SocketPath: path, Server: true})
	s7 := mustOpen(t, Options{Name: "s7", SocketPath: path, Server: true, ID: 7})
	if _, err := Open(Options{SocketPath: path, Server: true, ID: 7}); err == nil {
		t.Fatal("two ports with one id")
	}
	c7 := mustOpen(t, Options{Name: "c7", SocketPath: path, ID: 7})
	waitLink(t, true, c7, s7)
	if s0.Link() {
		t.Fatal("id 0 is up")
	}
	sendOne(t, c7, 7)
	s7.Free([]port.Packet{recvOne(t, s7)})
	s7.Close()
	waitLink(t, false, c7)
	stillServes(t, s0, path)
}

func TestSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.sock")
	s := mustOpen(t, Options{Name: "server", SocketPath: path, Server: true, Secret: "sesame"})
	for _, wrong := range []string{"", "sesam", "sesame!", "Sesame"} {
		c := mustOpen(t, Options{Name: "client", SocketPath: path, Secret: wrong})
		time.Sleep(30 * time.Millisecond)
		if c.Link() || s.Link() {
			t.Errorf("linked with secret %q", wrong)
		}
		c.Close()
	}
	c := mustOpen(t, Options{Name: "client", SocketPath: path, Secret: "sesame"})
	waitLink(t, true, c, s)
}

func TestSecondClientIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.sock")
	s := mustOpen(t, Options{Name: "server", SocketPath: path, Server: true})
	c := mustOpen(t, Options{Name: "first", SocketPath: path})
	waitLink(t, true, c, s)
	r := dialRaw(t, path)
	defer r.close()
	r.ctl.send(initMsg{version: version}.encode(), -1)
	if reason := r.dropped(); !strings.Contains(reason, "already connected") {
		t.Fatalf("reason %q", reason)
	}
	sendOne(t, c, 1)
	s.Free([]port.Packet{recvOne(t, s)})
}

func TestAbstractSocket(t *testing.T) {
	name := "@urdma-memif-test-" + filepath.Base(t.TempDir()) + time.Now().Format("150405.000000")
	s := mustOpen(t, Options{Name: "server", SocketPath: name, Server: true})
	stillServes(t, s, name)
}

// TestConnectionFlood: silent connections use a limited number of descriptors, and are closed.
func TestConnectionFlood(t *testing.T) {
	p, path := openServer(t)
	before := fdCount(t)
	var flood []*net.UnixConn
	for range 3 * maxOpen {
		c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
		if err != nil {
			break
		}
		flood = append(flood, c)
	}
	time.Sleep(50 * time.Millisecond)
	if n := fdCount(t) - before - len(flood); n > maxOpen+8 {
		t.Errorf("the server holds %d descriptors for them", n)
	}
	for _, c := range flood {
		c.Close()
	}
	stillServes(t, p, path)
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "no socket path"},
		{Options{SocketPath: strings.Repeat("x", 200)}, "socket path of 200 bytes"},
		{Options{SocketPath: "/x", MTU: 100}, "MTU 100"},
		{Options{SocketPath: "/x", RingSize: 1000}, "ring size 1000"},
		{Options{SocketPath: "/x", RingSize: 1 << 15}, "ring size 32768"},
		{Options{SocketPath: "/x", BufferSize: 1000}, "buffer size 1000"},
		{Options{SocketPath: "/x", Secret: strings.Repeat("x", 24)}, "secret of 24 bytes"},
		{Options{SocketPath: "/nonexistent/dir/s", Server: true}, "lock file"},
	} {
		if _, err := Open(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one about %q", err, c.want)
		}
	}
}
