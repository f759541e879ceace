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

// Device is what clients are told of a port. Its number is its index; those of the ports of
// one device follow each other.
type Device struct {
	Name        string // of the port
	Of          string // of the device, as programs see it
	Number      int    // of the port on the device, from 1
	Place              // when urdmad started; see At
	Scope       uint32 // index of the interface below, on which link-local addresses are; 0: none
	MAC         [6]byte
	Personality *personality.Personality // as which programs see it, unless they ask otherwise
	MaxQP       int
	Link        func() bool

	pairs account.Pairs         // that exist, of a device's first port: on all of them
	place atomic.Pointer[Place] // that SetPlace said; nil: Place
}

// PortNamed is the number of a port, or -1.
func (s *Server) PortNamed(name string) int {
	for i := range s.Devices {
		if s.Devices[i].Name == name {
			return i
		}
	}
	return -1
}

// DeviceNamed is the number of a device's first port, or -1.
func (s *Server) DeviceNamed(name string) int {
	for i := range s.Devices {
		if s.Devices[i].Of == name {
			return i
		}
	}
	return -1
}

// first is the number of the first port of the device that has port dev.
func (s *Server) First(dev int) int { return dev + 1 - s.Devices[dev].Number }

// ports is how many ports the device has whose first is number dev.
func (s *Server) Ports(dev int) int {
	n := 1
	for dev+n < len(s.Devices) && s.Devices[dev+n].Number > 1 {
		n++
	}
	return n
}

// Place is a port's in its network.
type Place struct {
	Address netip.Prefix // the port's own, with its network's length; unspecified: none
	MTU     int          // bytes of the largest IP packet
}

// At is where a device is now; any goroutine may ask.
func (d *Device) At() Place {
	if p := d.place.Load(); p != nil {
		return *p
	}
	return d.Place
}

// Worker is a poll loop as its clients' sessions reach it.
type Worker struct {
	Engine  *engine.Engine
	CM      *cm.Manager
	Numbers *connect.Numbers
	// Wake gets the worker out of its sleep.
	Wake func()
	// Borrow calls fn in the place of the worker, if that sleeps, and reports whether it
	// did; nil: it never does.
	Borrow func(fn func()) bool
	// WatchKick and UnwatchKick add and remove a kick socket of the worker.
	WatchKick, UnwatchKick func(fd int) error

	workerState
	clients atomic.Int32 // that belong to it
}

// workerState is what a worker's clients have made; its thread's.
type workerState struct {
	attached   []*Session              // that have said HELLO
	byClient   map[*qp.Client]*Session // those
	linkEvents []linkEvent             // see LinkChanged
}

// Server is the control side of an urdmad.
type Server struct {
	Workers []*Worker
	Devices []Device
	account.Accounts
	Sysfs    string // what ibv_get_sysfs_path() should return
	Version  uint32 // major<<16 | minor<<8 | patch
	Log      *slog.Logger
	MaxReads int // IRD and ORD limit of one queue pair

	hooks    []*Hooks
	requests map[abi.Type]Request // that attached features answer

	connected
	domains sharedDomains
}

// connected is the sessions that there are.
type connected struct {
	mu       sync.Mutex // guards the rest but nextID
	sessions map[*Session]struct{}
	closing  bool
	turn     int        // the worker that a new client goes to, of those with the fewest
	waiting  []*Session // that have not said HELLO, the oldest first
	running  sync.WaitGroup
	nextID   atomic.Uint64
}

// Listen makes the control socket. Its directory must exist; a stale socket is
// replaced, a live one and any other file is an error.
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

// removeStale removes a socket that nobody answers. connect(2) fails with
// ECONNREFUSED for every other kind of file too.
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
			// Most often out of descriptors: what clients hold comes back.
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

// Go runs fn concurrently with the sessions, and Close waits for it; unless those are being
// closed.
func (s *Server) Go(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.running.Go(fn)
	}
}

// Close hangs up on every client and waits until what they owned is gone. The
// engine must still be running.
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
