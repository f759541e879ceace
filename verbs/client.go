package verbs

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"urdma/config"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// Client is a session with a urdmad. What it owns ends with it, and with the
// process.
type Client struct {
	call  sync.Mutex // held for one request and its response
	conn  *net.UnixConn
	seq   uint32
	reply [abi.MaxMessage]byte
	gone  atomic.Bool

	devices  int
	bellsMem []byte
	bells    []ring.ClientBells // by worker
	kick     int
	kickMu   sync.RWMutex // kick is not closed under a writer

	arena  arena
	pinned pinned
	cm     router

	mu     sync.Mutex
	files  map[*eventFile]struct{} // to close with the client
	closed bool
}

// Open connects to the urdmad that C programs would find: $URDMA_SOCKET, or the
// first of the default places that has a socket. The error is ErrNoDaemon if
// nobody answers there.
func Open() (*Client, error) { return OpenSocket(config.FindSocket()) }

// OpenSocket connects to the urdmad at a control socket's path.
func OpenSocket(path string) (*Client, error) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrNoDaemon, path, err)
	}
	c := &Client{conn: conn, kick: -1, files: map[*eventFile]struct{}{}}
	c.arena.client, c.cm.client = c, c
	if err := c.greet(); err != nil {
		_ = c.Close() // the error that matters is the greeting's
		return nil, err
	}
	return c, nil
}

func (c *Client) greet() error {
	req := abi.HelloRequest{ABIVersion: abi.Version, PID: uint32(os.Getpid())}
	copy(req.Command[:len(req.Command)-1], filepath.Base(os.Args[0]))
	var fds []int
	if self, err := unix.Open("/proc/self/mem", unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		defer unix.Close(self) //nolint:errcheck // urdmad has its own copy
		fds = append(fds, self)
	}
	var resp abi.HelloResponse
	got, err := call(c, abi.Hello, &req, &resp, fds...)
	if errors.Is(err, unix.EPROTO) {
		return fmt.Errorf("verbs: urdmad speaks another version of the protocol than this program (%d): %w", abi.Version, err)
	}
	if err != nil {
		return fmt.Errorf("verbs: greeting urdmad: %w", err)
	}
	if len(got) != 2 {
		closeAll(got)
		return fmt.Errorf("verbs: urdmad sent %d descriptors with its greeting, expected 2", len(got))
	}
	c.kick, c.devices = got[1], int(resp.NumDevices)
	defer unix.Close(got[0]) //nolint:errcheck // mapped or not, it is done with
	return c.mapBells(got[0], &resp)
}

func (c *Client) mapBells(fd int, resp *abi.HelloResponse) (err error) {
	if int(resp.DoorbellBytes) < int(resp.Workers)*abi.Size[abi.Doorbells]() {
		return fmt.Errorf("verbs: urdmad offers %d bytes of doorbells for %d workers", resp.DoorbellBytes, resp.Workers)
	}
	if c.bellsMem, err = mapShared(fd, int(resp.DoorbellBytes)); err != nil {
		return err
	}
	c.bells = make([]ring.ClientBells, resp.Workers)
	for i := range c.bells {
		c.bells[i].Init(c.bellsMem, i)
	}
	return nil
}

// mapShared maps memory that urdmad shares.
func mapShared(fd, bytes int) ([]byte, error) {
	m, err := unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("verbs: mapping %d bytes of urdmad's memory: %w", bytes, err)
	}
	return m, nil
}

// Alive reports whether urdmad still answered when it was last heard of.
func (c *Client) Alive() bool { return !c.gone.Load() }

// ring rings a doorbell after a publish, and wakes the worker if it sleeps.
func (c *Client) ring(worker, bell int) {
	if !c.bells[worker].Ring(bell) {
		return
	}
	c.kickMu.RLock()
	defer c.kickMu.RUnlock()
	if c.kick >= 0 {
		// A full socket has kicks enough; a dead one is noticed elsewhere.
		_ = unix.Sendto(c.kick, []byte{0}, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
	}
}

// Close hangs up: urdmad ends every connection of the client and forgets its
// objects. Waiting calls return ErrClosed.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	c.closed = true
	files := c.files
	c.files = nil
	c.mu.Unlock()
	c.pinned.close(!c.gone.Load())
	c.gone.Store(true)
	err := c.conn.Close()
	for f := range files {
		f.f.Close()
	}
	c.kickMu.Lock()
	if c.kick >= 0 {
		_ = unix.Close(c.kick) // nothing to do about a failed close
		c.kick = -1
	}
	c.kickMu.Unlock()
	c.arena.close()
	return err
}
