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

	"urdma/ancillary"
)

// listener is a server's control socket, shared by this process's server ports with the same path.
type listener struct {
	path string
	ln   *net.UnixListener
	// closer closes the connections of clients, and descriptors that they send.
	closer ancillary.Closer
	lock   *os.File // locked while we own the path; nil for abstract sockets

	mu    sync.Mutex
	ports map[uint32]*Port
	open  map[*net.UnixConn]struct{} // connections in a handshake or with a link
	wg    sync.WaitGroup
}

var (
	listenersMu sync.Mutex
	listeners   = map[string]*listener{}
)

// maxOpen limits the connections that a listener serves at a time, so that a client that keeps connecting
// can't use up our descriptors.
const maxOpen = 64

// listen makes p accept connections on its socket.
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

// takePath checks that no other process serves the path, and removes the socket of a dead server. Our servers
// hold a lock file next to the socket as long as they run, so that of two that start together only one
// removes it; other servers are detected by connecting to them.
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

// releasePath releases the lock. The lock file is not removed, because another server may just have opened
// it.
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
		_ = l.closer.Unlisten(l.ln) // removes the socket while we still hold the lock
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
		if err != nil { // for example, no descriptors are left: try again later
			time.Sleep(100 * time.Millisecond)
			continue
		}
		c := control{conn, &l.closer}
		if !l.track(conn) {
			c.hangUp()
			continue
		}
		l.wg.Add(1)
		go func() {
			defer l.wg.Done()
			defer c.hangUp()
			defer l.untrack(conn)
			l.serve(c)
		}()
	}
}

func (l *listener) track(c *net.UnixConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= maxOpen || len(l.ports) == 0 || l.closer.Full() {
		return false
	}
	l.open[c] = struct{}{}
	return true
}

func (l *listener) untrack(c *net.UnixConn) {
	l.mu.Lock()
	delete(l.open, c)
	l.mu.Unlock()
}

// find returns the port with an id, or nil. Close of the port waits until the caller calls running.Done.
func (l *listener) find(id uint32) *Port {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.ports[id]
	if p != nil {
		p.running.Add(1)
	}
	return p
}

// queues returns the largest number of queues of the listener's ports: when it is sent, the client has not
// yet named a port.
func (l *listener) queues() (most uint16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.ports {
		most = max(most, uint16(len(p.queues)))
	}
	return max(most, 1)
}
