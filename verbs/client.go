package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
	"urdma/verbs/arena"
	"urdma/verbs/cmid"
	"urdma/verbs/session"
	"urdma/verbs/yield"
)

// Client is a connection to urdmad. Everything made through it ends with it.
type Client struct {
	session *session.Session

	kicks   []int  // the kick socket of each worker
	bells   []byte // the doorbell page
	workers int
	devices []*Device
	memory  arena.Arena

	readers sync.WaitGroup

	pairs atomic.Uint64 // queue pairs made, to tell them apart
	round yield.Round   // of polls over the completion queues

	mu       sync.Mutex // guards what follows
	contexts map[*Context]struct{}
	channels map[*CompChannel]struct{}
	regions  map[*MR]struct{}
	cqs      map[uint32]*CQ
	qps      map[uint32]*QP
	srqs     map[uint32]*SRQ
	cm       *cmid.Channel // written under sharing as well

	sharing session.Mutex    // makes one of each: cm, and the contexts of shared
	shared  map[int]*Context // by device, for connections that bring no domain
}

// Open connects to urdmad. An empty socket means the one that urdma exec would
// find: $URDMA_SOCKET, or urdma/urdmad.sock in $XDG_RUNTIME_DIR, or
// /run/urdma/urdmad.sock, or /tmp/urdma-UID/urdmad.sock. The error is
// ErrNoDaemon where none answers, ErrVersion where one speaks another protocol.
func Open(socket string) (*Client, error) { return OpenContext(context.Background(), socket) }

// OpenContext is Open that waits for urdmad no longer than ctx.
func OpenContext(ctx context.Context, socket string) (*Client, error) {
	places := []string{socket}
	if socket == "" {
		places = session.Places()
	}
	c := &Client{sharing: session.NewMutex(), contexts: map[*Context]struct{}{}, channels: map[*CompChannel]struct{}{}, regions: map[*MR]struct{}{},
		cqs: map[uint32]*CQ{}, qps: map[uint32]*QP{}, srqs: map[uint32]*SRQ{}, shared: map[int]*Context{}}
	var err error
	if c.session, err = session.Dial(ctx, places, c.lost); err != nil {
		return nil, err
	}
	if err := c.greet(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Client) greet(ctx context.Context) error {
	req := abi.HelloRequest{ABIVersion: abi.Version, PID: uint32(os.Getpid())}
	copy(req.Command[:len(req.Command)-1], filepath.Base(os.Args[0]))
	memory, err := ownMemory()
	if err != nil {
		return err
	}
	defer session.CloseAll([]int{memory}) // or -1, which is harmless
	var resp abi.HelloResponse
	fds, err := callContext(ctx, c, abi.Hello, &req, &resp, memory, session.AnyFDs)
	if resp.ABIVersion != 0 && resp.ABIVersion != abi.Version {
		session.CloseAll(fds)
		return fmt.Errorf("%w: urdmad has %d, this program %d", ErrVersion, resp.ABIVersion, abi.Version)
	}
	if err != nil {
		return err
	}
	if len(fds) == 0 || len(fds) != 1+int(resp.Workers) || uint64(resp.DoorbellBytes) < uint64(resp.Workers)*uint64(abi.Size[abi.Doorbells]()) {
		session.CloseAll(fds)
		return fmt.Errorf("verbs: doorbells of %d bytes and %d descriptors for %d workers: %w", resp.DoorbellBytes, len(fds), resp.Workers, unix.EPROTO)
	}
	defer unix.Close(fds[0])
	c.workers, c.kicks = int(resp.Workers), fds[1:]
	if c.bells, err = mapShared(fds[0], int(resp.DoorbellBytes)); err != nil {
		return err
	}
	return c.readDevices(ctx, int(resp.NumDevices))
}

// ownMemory opens what urdmad reaches this process's memory by. Without it (-1)
// only memory of AllocMemory can be registered.
func ownMemory() (int, error) {
	fd, err := unix.Open("/proc/self/mem", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return -1, fmt.Errorf("verbs: /proc/self/mem: %w", err)
	}
	if err != nil {
		return -1, nil
	}
	return fd, nil
}

func mapShared(fd, bytes int) ([]byte, error) {
	mem, err := unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("verbs: mapping %d bytes: %w", bytes, err)
	}
	return mem, nil
}

func unmap(mem []byte) {
	if mem != nil {
		_ = unix.Munmap(mem) // fails only for what is not a mapping
	}
}

// Gone is closed when the connection to urdmad has ended.
func (c *Client) Gone() <-chan struct{} { return c.session.Gone() }

func (c *Client) dead() bool { return c.session.Dead() }

// endError says how the client ended.
func (c *Client) endError() error { return c.session.EndError() }

// lost wakes everybody who waits for urdmad.
func (c *Client) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.cqs {
		q.wake()
	}
	if c.cm != nil {
		c.cm.End()
	}
	for m := range c.regions {
		m.unpin() // a client that is dropped with them pinned would be a panic
	}
}

func (c *Client) callHandle(t abi.Type, handle uint32) error { return c.session.CallHandle(t, handle) }

// call is session.Call without an end of patience.
func call[Resp, Req any](c *Client, t abi.Type, req *Req, out *Resp, sendFD, wantFDs int) ([]int, error) {
	return callContext(context.Background(), c, t, req, out, sendFD, wantFDs)
}

func callContext[Resp, Req any](ctx context.Context, c *Client, t abi.Type, req *Req, out *Resp, sendFD, wantFDs int) ([]int, error) {
	return session.Call(ctx, c.session, t, req, out, sendFD, wantFDs)
}

// kick wakes a sleeping worker. A full socket means that kicks enough are on
// their way.
func (c *Client) kick(worker int) {
	_ = unix.Send(c.kicks[worker], kickByte, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

var kickByte = []byte{1}

// Close ends the connection to urdmad and everything made through it: queue
// pairs, whose peers are told, listeners, and the memory of AllocMemory, which
// must not be touched afterwards. Whoever waits gets ErrClosed.
func (c *Client) Close() error {
	if err := c.session.Close(); err != nil {
		return err
	}
	for _, q := range snapshot(c, c.qps) {
		q.release()
	}
	for _, s := range snapshot(c, c.srqs) {
		s.release()
	}
	for _, q := range snapshot(c, c.cqs) {
		q.release()
	}
	c.releaseRest()
	c.session.Wait()
	c.readers.Wait()
	unmap(c.bells)
	session.CloseAll(c.kicks)
	c.memory.Close()
	return nil
}

func (c *Client) releaseRest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for m := range c.regions {
		m.release()
	}
	for ch := range c.channels {
		ch.release()
	}
	for x := range c.contexts {
		x.release()
	}
	if c.cm != nil {
		c.cm.Close()
	}
	clear(c.regions)
	clear(c.channels)
	clear(c.contexts)
}

// snapshot empties a table and returns what was in it.
func snapshot[T any](c *Client, table map[uint32]T) []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]T, 0, len(table))
	for _, v := range table {
		all = append(all, v)
	}
	clear(table)
	return all
}
