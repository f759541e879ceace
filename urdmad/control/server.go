package control

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"urdma/urdmad/control/account"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/verbs/personality"
)

// Device is a port as clients see it. Its number is its index in Server.Devices; the ports of one
// device follow each other.
type Device struct {
	Name        string // port name
	Of          string // device name, as programs see it
	Number      int    // port number on the device, from 1
	Place              // place when urdmad started; see At
	Scope       uint32 // index of the kernel interface of link-local addresses; 0: none
	MAC         [6]byte
	Personality *personality.Personality // kind of device that programs see, unless they ask for another
	MaxQP       int
	Link        func() bool

	pairs account.Pairs         // queue pairs; on a device's first port: those of all its ports
	place atomic.Pointer[Place] // set by SetPlace; nil: Place
}

// PortNamed returns the number of the port with a name, or -1.
func (s *Server) PortNamed(name string) int {
	for i := range s.Devices {
		if s.Devices[i].Name == name {
			return i
		}
	}
	return -1
}

// DeviceNamed returns the number of the first port of the device with a name, or -1.
func (s *Server) DeviceNamed(name string) int {
	for i := range s.Devices {
		if s.Devices[i].Of == name {
			return i
		}
	}
	return -1
}

// First returns the number of the first port of port dev's device.
func (s *Server) First(dev int) int { return dev + 1 - s.Devices[dev].Number }

// Ports returns the number of ports of the device whose first port is dev.
func (s *Server) Ports(dev int) int {
	n := 1
	for dev+n < len(s.Devices) && s.Devices[dev+n].Number > 1 {
		n++
	}
	return n
}

// Place is a port's address and MTU.
type Place struct {
	Address netip.Prefix // the port's address, with its network's prefix length; unspecified: none
	MTU     int          // bytes of the largest IP packet
}

// At returns the port's present place. Any goroutine may call it.
func (d *Device) At() Place {
	if p := d.place.Load(); p != nil {
		return *p
	}
	return d.Place
}

// Worker is a poll loop, as the sessions of its clients see it.
type Worker struct {
	Engine  *engine.Engine
	CM      *cm.Manager
	Numbers *connect.Numbers
	// Wake wakes the worker.
	Wake func()
	// Borrow calls fn in place of the worker if the worker sleeps, and reports whether it did;
	// nil: never.
	Borrow func(fn func()) bool
	// WatchKick and UnwatchKick add and remove a kick socket of the worker.
	WatchKick, UnwatchKick func(fd int) error

	workerState
	clients atomic.Int32 // number of clients
}

// workerState is the state of a worker's clients; it belongs to the worker's thread.
type workerState struct {
	attached   []*Session              // sessions that have said HELLO
	byClient   map[*qp.Client]*Session // the same, by client
	linkEvents []linkEvent             // see LinkChanged
	event      abi.CMEvent             // the event being delivered; here because each would be allocated
}

// Server is the control side of a urdmad.
type Server struct {
	Workers []*Worker
	Devices []Device
	account.Accounts
	Sysfs    string // result of ibv_get_sysfs_path()
	Version  uint32 // major<<16 | minor<<8 | patch
	Log      *slog.Logger
	MaxReads int // IRD and ORD limit of one queue pair

	hooks    []*Hooks
	requests map[abi.Type]Request // requests that attached features answer

	connected
	domains sharedDomains
}

// connected has the sessions.
type connected struct {
	mu       sync.Mutex // guards the other fields except nextID
	sessions map[*Session]struct{}
	closing  bool
	turn     int        // next worker among those with the fewest clients
	waiting  []*Session // sessions that have not said HELLO, oldest first
	running  sync.WaitGroup
	nextID   atomic.Uint64
}

// Listen makes the control socket. Its directory must exist. A stale socket is replaced; a live
// socket or any other file is an error.
func Listen(path string, mode os.FileMode) (*net.UnixListener, error) {
	if c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"}); err == nil {
		defer c.Close()
		var other account.Owner
		other.Learn(c)
		return nil, fmt.Errorf("control: another urdmad, process %d, listens on %s", other.PID, path)
	} else if errors.Is(err, unix.ECONNREFUSED) {
		if err := removeStale(path); err != nil {
			return nil, fmt.Errorf("control: %w", err)
		}
	}
	old := unix.Umask(0o177)
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	unix.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("control: listening on %s: %w", path, err)
	}
	if err := os.Chmod(path, mode); err != nil {
		l.Close()
		return nil, fmt.Errorf("control: %w", err)
	}
	return l, nil
}

// removeStale removes a socket on which nobody listens. Other files are an error: connect(2)
// fails with ECONNREFUSED for them too.
func removeStale(path string) error {
	fi, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if fi.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is %s, expected a socket or no file; choose another path by --socket, \"socket\" in urdma.json or URDMA_SOCKET", path, kindOf(fi.Mode()))
	}
	return os.Remove(path)
}

func kindOf(m fs.FileMode) string {
	switch m.Type() {
	case 0:
		return "a regular file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeNamedPipe:
		return "a FIFO"
	default:
		return "a device"
	}
}

// Serve accepts clients until the listener is closed.
func (s *Server) Serve(l *net.UnixListener) error {
	for {
		c, err := l.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			// Most often descriptors have run out; clients will free some.
			s.Log.Warn("accepting a client", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		s.start(c)
	}
}

func (s *Server) start(c *net.UnixConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		c.Close()
		return
	}
	if s.sessions == nil {
		s.sessions = map[*Session]struct{}{}
	}
	x := newSession(s, c)
	s.wait(x)
	s.sessions[x] = struct{}{}
	s.running.Go(func() {
		x.run()
		s.served(x)
		x.Leave()
		s.mu.Lock()
		delete(s.sessions, x)
		s.mu.Unlock()
	})
}

// Go runs fn concurrently with the sessions, and Close waits for it. It does nothing once Close
// has begun.
func (s *Server) Go(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.running.Go(fn)
	}
}

// Close hangs up on every client and waits until all their objects are removed. The engine must
// still be running.
func (s *Server) Close() {
	for _, w := range s.Workers {
		w.turn(w.CM.Silence)
	}
	s.mu.Lock()
	s.closing = true
	for x := range s.sessions {
		x.conn.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}
