package enginetest

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/events"
	"urdma/urdmad/core/mem"
	"urdma/urdmad/core/qp"
	"urdma/verbs/abi"
	"urdma/verbs/ring"
)

// memBytes is the size of a client's shared file: pages that nobody touches
// cost nothing.
const memBytes = 80 << 20

// Client is a process with a session at a host.
type Client struct {
	Host    *Host
	E       *engine.Client
	Bells   ring.ClientBells
	Section []byte // the doorbell memory
	PD      uint64
	Async   *Events
	Faults  []error
	NextQPN uint32 // number of the next queue pair; 0: a random one

	Sockets    int // sockets of its ids, over TCP
	MaxSockets int // limit of Sockets; 0: none

	shared  []byte // the client's own view of its file
	used    int
	handles uint32 // of queues and queue pairs
	ids     []*cm.ID
	seen    []cm.Event // rdma_cm events that came and were not yet asked for
}

// NewClient connects a client. It has one protection domain and is its own rdma_cm event channel.
func (h *Host) NewClient() *Client {
	t := h.World.T
	t.Helper()
	h.clients++
	c := &Client{Host: h, PD: uint64(len(h.Name))<<32 | uint64(h.Name[0])<<16 | uint64(h.clients),
		Section: make([]byte, abi.Size[abi.Doorbells]())}
	self, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	space := mem.NewSpace(self)
	t.Cleanup(space.Close)
	file := newFile(t.Fatalf)
	if c.shared, err = unix.Mmap(int(file.Fd()), 0, memBytes, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(c.shared) })
	if err := space.AddFile(1, file); err != nil {
		t.Fatal(err)
	}
	if err := space.Fallback(); err != nil {
		t.Fatal(err)
	}
	c.Bells.Init(c.Section, 0)
	c.Async = newEvents(t)
	c.E = &engine.Client{Client: qp.Client{ID: uint64(h.clients), Name: fmt.Sprintf("%s%d", h.Name, h.clients),
		Space: space,
		Fault: func(err error) { c.Faults = append(c.Faults, err) }}}
	h.Do(func() { h.Engine.AddClient(c.E, c.Section) })
	return c
}

func newFile(fatalf func(string, ...any)) *os.File {
	fd, err := unix.MemfdCreate("client", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		fatalf("memfd: %v", err)
	}
	if err := unix.Ftruncate(fd, memBytes); err != nil {
		fatalf("ftruncate: %v", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		fatalf("seal: %v", err)
	}
	return os.NewFile(uintptr(fd), "client")
}

// Region is registered memory. Bytes is the client's mapping of it.
type Region struct {
	*mem.Region
	Bytes  []byte
	Client *Client
	File   *os.File // of RegisterFile
}

// Register registers n bytes of shared memory.
func (c *Client) Register(n int, access uint32) *Region {
	r := c.region(n, access)
	c.insert(r)
	return r
}

// Reregister makes the region's keys name other memory, like ibv_rereg_mr(3).
func (r *Region) Reregister() *Region {
	c := r.Client
	fresh := c.region(len(r.Bytes), r.Access)
	c.Host.World.T.Cleanup(fresh.Deregister)
	c.Host.Do(func() { c.Host.Engine.QPs.Regions.Replace(r.Region, fresh.Region) })
	return fresh
}

// region makes one of n bytes that nobody knows yet. The processor notices an access of the engine to what lies behind
// them, or a write to them if nobody may write: then Faults has it.
func (c *Client) region(n int, access uint32) *Region {
	t := c.Host.World.T
	t.Helper()
	at, pages := c.used, (n+4095)&^4095
	c.used += pages + 4096
	if c.used > memBytes {
		t.Fatalf("client memory is used up by %d bytes", n)
	}
	m, err := c.E.Space.Map(1, uint64(at), uint64(pages+4096))
	if err == nil {
		err = unix.Mprotect(m.Bytes[pages:], unix.PROT_NONE)
	}
	if err == nil && access&(mem.LocalWrite|mem.RemoteWrite|mem.RemoteAtomic) == 0 {
		err = unix.Mprotect(m.Bytes[:pages], unix.PROT_READ)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.Bytes = m.Bytes[:n:n]
	return &Region{Region: mem.NewRegion(c.E.Space, c.PD, access, 0x7f0000000000+uint64(at), uint64(n), 0, m),
		Bytes: c.shared[at : at+n : at+n], Client: c}
}

// RegisterDirect registers n bytes that the engine accesses through /proc/self/mem in its own
// turn, as for a trusted client. All private memory of the client is accessed that way
// afterwards.
func (c *Client) RegisterDirect(n int, access uint32) *Region {
	c.Host.Do(c.E.Space.SetDirect)
	return c.RegisterFallback(n, access)
}

// RegisterFallback registers n bytes that the engine can access through /proc/self/mem only.
func (c *Client) RegisterFallback(n int, access uint32) *Region {
	t := c.Host.World.T
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	addr := addressOf(b)
	r := &Region{Region: mem.NewRegion(c.E.Space, c.PD, access, addr, uint64(n), addr, mem.Mapping{}), Bytes: b, Client: c}
	c.insert(r)
	return r
}

// RegisterFile registers n bytes of a file that the client has mapped and can truncate.
func (c *Client) RegisterFile(n int, access uint32) *Region {
	t := c.Host.World.T
	fd, err := unix.MemfdCreate("file", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "file")
	t.Cleanup(func() { file.Close() })
	if err := unix.Ftruncate(fd, int64(n)); err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	m, err := c.E.Space.MapFile(file, mem.FileID{Major: unix.Major(st.Dev), Minor: unix.Minor(st.Dev), Inode: st.Ino}, 0,
		uint64(n))
	if err != nil {
		t.Fatal(err)
	}
	addr := addressOf(b)
	r := &Region{Region: mem.NewRegion(c.E.Space, c.PD, access, addr, uint64(n), addr, m), Bytes: b, Client: c, File: file}
	c.insert(r)
	return r
}

// RegisterMissing registers n bytes that do not exist, as if the client had unmapped registered
// memory.
func (c *Client) RegisterMissing(n int, access uint32) *Region {
	const nobody = 4096 // below vm.mmap_min_addr
	r := &Region{Region: mem.NewRegion(c.E.Space, c.PD, access, nobody, uint64(n), nobody, mem.Mapping{}), Client: c}
	c.insert(r)
	return r
}

// RegisterNull registers a null region, which has no memory.
func (c *Client) RegisterNull() *Region {
	null, err := mem.NewNull(c.PD)
	if err != nil {
		c.Host.World.T.Fatal(err)
	}
	r := &Region{Region: null, Client: c}
	c.insert(r)
	return r
}

func (c *Client) insert(r *Region) {
	c.Host.World.T.Cleanup(r.Deregister) // gives the mapping back
	c.Host.Do(func() {
		if !c.Host.Engine.QPs.Regions.Insert(r.Region) {
			c.Host.World.T.Error("no STag left")
		}
	})
}

// Deregister deregisters the region.
func (r *Region) Deregister() {
	r.Client.Host.Do(func() { r.Client.Host.Engine.QPs.Regions.Remove(r.Region) })
}

// SGE returns a scatter/gather element of n bytes at offset off.
func (r *Region) SGE(off, n int) abi.SGE {
	return abi.SGE{Addr: r.Base() + uint64(off), Length: uint32(n), LKey: uint32(r.STag)}
}

// Events is both ends of an event socket: the client's and the engine's.
type Events struct {
	Engine *events.Socket
	fd     int
}

func newEvents(t interface {
	Fatal(...any)
	Cleanup(func())
}) *Events {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	e := &Events{Engine: events.NewSocket(p[0], nil), fd: p[1]}
	t.Cleanup(func() {
		e.Engine.Close()
		_ = unix.Close(p[1])
	})
	return e
}

// read takes one event of type T, if there is one.
func read[T any](e *Events) (v T, ok bool) {
	var b [abi.MaxMessage]byte
	n, _, err := unix.Recvfrom(e.fd, b[:], unix.MSG_DONTWAIT)
	if err != nil || n == 0 {
		return v, false
	}
	return abi.Decode[T](b[:n])
}

// AsyncEvents reads all asynchronous events that have come.
func (c *Client) AsyncEvents() (out []abi.AsyncEvent) {
	for {
		ev, ok := read[abi.AsyncEvent](c.Async)
		if !ok {
			return out
		}
		out = append(out, ev)
	}
}

// Remove removes the client and its queue pairs, as control does when the client hangs up.
func (c *Client) Remove(qps ...*QP) {
	for _, q := range qps {
		q.Destroy()
	}
	c.Host.Do(func() {
		for _, id := range c.ids {
			c.Host.CM.Destroy(id)
		}
		c.Host.Engine.RemoveClient(c.E)
	})
}
