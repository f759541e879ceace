package test

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
	"urdma/verbs/personality"
)

// fakeUrdmad serves the control protocol to one program under test. The wr_id of a work request says how it
// completes, see work.
type fakeUrdmad struct {
	t       *testing.T
	path    string
	version uint32
	workers uint32 // the last of them does all the work
	device  abi.Device
	sysfs   string

	linkDownOnce bool
	busy         bool // does not accept connections at first

	lie func(body []byte, fds []int) ([]byte, []int) // changes an answer; nil: all are true

	mu       sync.Mutex // guards the fields below and every session's objects
	listener *net.UnixListener
	sessions map[*session]struct{}
	vectors  []uint32 // of the completion queues created
}

func startUrdmad(t *testing.T) *fakeUrdmad {
	t.Helper()
	return startUrdmadAt(t, filepath.Join(t.TempDir(), "urdmad.sock"))
}

func startUrdmadAt(t *testing.T, path string) *fakeUrdmad {
	t.Helper()
	d := &fakeUrdmad{t: t, path: path, version: abi.Version, workers: 1, sysfs: "/nowhere/urdma",
		sessions: map[*session]struct{}{}}
	d.device = abi.Device{Addr: abi.Addr{Family: syscall.AF_INET, Addr: [16]byte{10, 1, 2, 3}}, NumCompVectors: 1,
		PrefixLength: 24, PortNum: 1, NumPorts: 1, MAC: [6]byte{2, 0, 0, 1, 2, 3}, MTU: 9000, MaxDatagram: 4096,
		LinkUp: 1, MaxQP: 64, MaxQPWR: 256, MaxSGE: 8, MaxSGERd: 1, MaxInline: 512, MaxCQ: 64, MaxCQE: 4096, MaxMR: 64,
		MaxPD: 64, MaxRdAtom: 16, MaxMRSize: 1 << 40, MaxMsg: 1 << 30}
	personality.Own.Describe(0, "urdma0", "1.2.3", &d.device)
	d.listen()
	t.Cleanup(d.die)
	return d
}

// prepare configures it for a case of testdata.
func (d *fakeUrdmad) prepare(name string) {
	switch name {
	case "mismatch":
		d.version = 99
	case "nobody":
		d.die()
	case "vectors":
		d.device.NumCompVectors = 3
	case "second_worker":
		d.workers = 2
	case "link":
		d.linkDownOnce = true
	case "interrupted":
		d.busy = true
		d.reborn()
	}
}

func (d *fakeUrdmad) listen() {
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: d.path, Net: "unixpacket"})
	if err != nil {
		d.t.Fatal(err)
	}
	d.listener = l
	if d.busy {
		d.fillQueue()
		time.AfterFunc(300*time.Millisecond, d.accept)
		return
	}
	go d.accept()
}

// fillQueue makes the next program that connects wait until accept runs.
func (d *fakeUrdmad) fillQueue() {
	raw, err := d.listener.SyscallConn()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) { err = unix.Listen(int(fd), 0) }); err != nil {
		d.t.Fatal(err)
	}
	c, dialed := net.DialUnix("unixpacket", nil, d.listener.Addr().(*net.UnixAddr))
	if err := errors.Join(err, dialed); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { c.Close() })
}

func (d *fakeUrdmad) accept() {
	for {
		c, err := d.listener.AcceptUnix()
		if err != nil {
			return
		}
		s := &session{d: d, conn: c, objects: map[uint32]any{}, stop: make(chan struct{})}
		d.mu.Lock()
		d.sessions[s] = struct{}{}
		d.mu.Unlock()
		go s.serve()
	}
}

// die closes all connections, as a killed urdmad does.
func (d *fakeUrdmad) die() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listener.Close()
	for s := range d.sessions {
		s.hangUp()
	}
}

// reborn is die, followed by a new urdmad with the same socket.
func (d *fakeUrdmad) reborn() {
	d.die()
	os.Remove(d.path)
	d.listen()
}

// session is one connection. d.mu guards its objects.
type session struct {
	d       *fakeUrdmad
	conn    *net.UnixConn
	bells   *bells
	kick    int
	objects map[uint32]any
	next    uint32
	sockets []int
	stop    chan struct{}
	ended   bool
	again   atomic.Bool // some work is left
}

func (s *session) hangUp() {
	if s.ended {
		return
	}
	s.ended = true
	if s.kick > 0 {
		unix.Shutdown(s.kick, unix.SHUT_RDWR)
	}
	close(s.stop)
	for _, fd := range s.sockets {
		unix.Close(fd)
	}
	// The kernel closes a dead process's sockets in any order; this one, the least convenient, last.
	time.Sleep(20 * time.Millisecond)
	s.conn.Close()
	delete(s.d.sessions, s)
}

func (s *session) add(v any) uint32 {
	s.next++
	s.objects[s.next] = v
	return s.next
}

func (s *session) serve() {
	buf, oob := make([]byte, abi.MaxMessage), make([]byte, 256)
	for {
		n, oobn, _, _, err := s.conn.ReadMsgUnix(buf, oob)
		if err != nil || n == 0 {
			s.d.mu.Lock()
			s.hangUp()
			s.d.mu.Unlock()
			return
		}
		var received []int
		if cm, err := unix.ParseSocketControlMessage(oob[:oobn]); err == nil && len(cm) > 0 {
			received, _ = unix.ParseUnixRights(&cm[0])
		}
		s.d.mu.Lock()
		body, fds, errno := s.answer(buf[:n], received)
		s.reply(buf[:n], body, fds, errno)
		s.d.mu.Unlock()
		for _, fd := range append(received, fds...) {
			unix.Close(fd)
		}
	}
}

func (s *session) reply(request, body []byte, fds []int, errno syscall.Errno) {
	if body == nil {
		body = make([]byte, 16)
	}
	copy(body, request[:16])
	binary.NativeEndian.PutUint32(body[4:], uint32(len(body)))
	binary.NativeEndian.PutUint32(body[12:], uint32(errno))
	if s.d.lie != nil {
		body, fds = s.d.lie(body, fds)
	}
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	if _, _, err := s.conn.WriteMsgUnix(body, oob, nil); err != nil && !s.ended {
		s.d.t.Logf("answering: %v", err)
	}
}

// socket makes an event socket: our end, and the descriptor to pass on.
func (s *session) socket() (ours, theirs int) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		s.d.t.Fatal(err)
	}
	s.sockets = append(s.sockets, pair[0])
	return pair[0], pair[1]
}

// memory makes a shared file and maps it.
func (s *session) memory(bytes uint32) (mem []byte, fd int) {
	fd, err := unix.MemfdCreate("ring", unix.MFD_CLOEXEC)
	if err == nil {
		err = unix.Ftruncate(fd, int64(bytes))
	}
	if err == nil {
		mem, err = unix.Mmap(fd, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		s.d.t.Fatal(err)
	}
	return mem, fd
}
