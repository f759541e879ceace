package memif

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// listener is a server's control socket, shared by the server ports of this
// process that name the same path.
type listener struct {
	path string
	ln   *net.UnixListener
	lock *os.File // held while we own the path; nil for abstract sockets

	mu    sync.Mutex
	ports map[uint32]*Port
	open  map[*net.UnixConn]struct{} // handshakes and links under way
	wg    sync.WaitGroup
}

var (
	listenersMu sync.Mutex
	listeners   = map[string]*listener{}
)

// maxOpen bounds the connections a listener serves at a time, so that a
// stranger who keeps connecting can't use up our descriptors.
const maxOpen = 64

// listen makes p answer on its socket.
func listen(p *Port) error {
	listenersMu.Lock()
	defer listenersMu.Unlock()
	path := p.opt.SocketPath
	l := listeners[path]
	if l == nil {
		var err error
		if l, err = newListener(path); err != nil {
			return fmt.Errorf("memif %s: %w", p.opt.Name, err)
		}
		listeners[path] = l
		l.wg.Add(1)
		go l.acceptForever()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.ports[p.opt.ID]; other != nil {
		return fmt.Errorf("memif %s: port %s already serves id %d on %s", p.opt.Name, other.opt.Name, p.opt.ID, path)
	}
	l.ports[p.opt.ID] = p
	p.listener = l
	return nil
}

func newListener(path string) (*listener, error) {
	l := &listener{path: path, ports: map[uint32]*Port{}, open: map[*net.UnixConn]struct{}{}}
	if !strings.HasPrefix(path, "@") {
		if err := l.takePath(); err != nil {
			return nil, err
		}
	}
	ln, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		l.releasePath()
		return nil, fmt.Errorf("listening: %w", err)
	}
	l.ln = ln
	if l.lock != nil {
		if err := os.Chmod(path, 0o660); err != nil {
			ln.Close()
			l.releasePath()
			return nil, fmt.Errorf("setting the socket's mode: %w", err)
		}
	}
	return l, nil
}

// takePath makes sure that nobody else serves the path, and removes a socket
// that a dead server left. Servers of ours hold a lock file beside the socket
// for as long as they live, so that two that start together can't both find it
// stale; any other server is found by connecting to it.
func (l *listener) takePath() error {
	lock, err := os.OpenFile(l.path+".lock", os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("lock file: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return fmt.Errorf("socket %s: another server holds its lock file (%w); stop it or choose another path", l.path, err)
	}
	if err := removeStale(l.path); err != nil {
		lock.Close()
		return err
	}
	l.lock = lock
	return nil
}

func removeStale(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("%s exists and is no socket (%v): remove it or choose another path", path, st.Mode().Type())
	}
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err == nil {
		c.Close()
		return fmt.Errorf("socket %s: a server answers there already; stop it or choose another path", path)
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("socket %s exists and may be in use: %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("removing a dead server's socket: %w", err)
	}
	return nil
}

// releasePath gives up the lock. The lock file stays: removing it would race
// with a server that has just opened it.
func (l *listener) releasePath() {
	if l.lock != nil {
		l.lock.Close()
		l.lock = nil
	}
}

// remove ends p's service, and with the last port the listener.
func (l *listener) remove(p *Port) {
	listenersMu.Lock()
	defer listenersMu.Unlock()
	l.mu.Lock()
	delete(l.ports, p.opt.ID)
	last := len(l.ports) == 0
	if last {
		delete(listeners, l.path)
		l.ln.Close() // unlinks the socket, while we still hold the lock
		for c := range l.open {
			c.CloseRead()
		}
	}
	l.mu.Unlock()
	if last {
		l.wg.Wait()
		l.releasePath()
	}
}

func (l *listener) acceptForever() {
	defer l.wg.Done()
	for {
		conn, err := l.ln.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, say: try again later
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if !l.track(conn) {
			conn.Close()
			continue
		}
		l.wg.Add(1)
		go func() {
			defer l.wg.Done()
			defer l.untrack(conn)
			l.serve(control{conn})
		}()
	}
}

func (l *listener) track(c *net.UnixConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= maxOpen || len(l.ports) == 0 {
		return false
	}
	l.open[c] = struct{}{}
	return true
}

func (l *listener) untrack(c *net.UnixConn) {
	l.mu.Lock()
	delete(l.open, c)
	l.mu.Unlock()
	c.Close()
}

// find returns the port with an id, or nil, and keeps its Close waiting until
// the caller calls running.Done.
func (l *listener) find(id uint32) *Port {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.ports[id]
	if p != nil {
		p.running.Add(1)
	}
	return p
}

// queues is how many the listener's ports have, at most: which of them a client wants is not
// known when it is told.
func (l *listener) queues() (most uint16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.ports {
		most = max(most, uint16(len(p.queues)))
	}
	return max(most, 1)
}
