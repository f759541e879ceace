package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"

	"urdma/verbs/abi"
)

// PD is a protection domain (ibv_alloc_pd(3)): queue pairs reach only memory regions of their own domain.
type PD struct {
	ctx    *Context
	handle uint32
}

// AllocPD makes a protection domain.
func (x *Context) AllocPD() (*PD, error) { return x.allocPD(context.Background()) }

func (x *Context) allocPD(ctx context.Context) (*PD, error) {
	var resp abi.HandleMessage
	if _, err := callContext(ctx, x.client, abi.AllocPD, &abi.HandleMessage{Handle: x.handle}, &resp, -1, 0); err != nil {
		return nil, err
	}
	return &PD{ctx: x, handle: resp.Handle}, nil
}

// Context returns the device that the domain belongs to.
func (p *PD) Context() *Context { return p.ctx }

// Close releases the domain; EBUSY while it has memory regions or queue pairs
// (ibv_dealloc_pd(3)).
func (p *PD) Close() error { return p.ctx.client.callHandle(abi.DeallocPD, p.handle) }

// SGE is a scatter/gather element: Length bytes at Addr in the memory region with this LKey. MR.SGE makes
// one.
type SGE = abi.SGE

// Remote is the address in a peer's memory for a Write or Read. Peers send each other such addresses in
// messages or private data.
type Remote struct {
	Addr uint64
	RKey uint32
}

// MR is a memory region (ibv_reg_mr(3)).
type MR struct {
	pd             *PD
	handle         uint32
	lkey           uint32
	rkey           uint32
	bytes          []byte
	addr           uint64
	shared         bool
	file           uint32         // shared memory: urdmad's handle of the memfd
	at             extent         // shared memory: the range in the memfd
	whole          []byte         // shared memory: the mapping, in whole pages
	pins           runtime.Pinner // other memory
	mapped         bool           // other memory: urdmad maps the program's file
	unpinned, once sync.Once
}

// AllocMemory allocates and registers n bytes of zeroed, page-aligned memory that urdmad maps, too. It is not
// on Go's heap, so it is not garbage-collected: Close frees it, and it must not be accessed afterwards.
func (p *PD) AllocMemory(n int, access Access) (*MR, error) {
	if n <= 0 {
		return nil, fmt.Errorf("verbs: memory of %d bytes: %w", n, syscall.EINVAL)
	}
	c := p.ctx.client
	file, err := c.memory.file(c.shareFile)
	if err != nil {
		return nil, c.orEnd(err)
	}
	at, mem, err := c.memory.take(n)
	if err != nil {
		return nil, c.orEnd(err)
	}
	m := &MR{pd: p, bytes: mem[:n:n], shared: true, file: file, at: at, whole: mem}
	if err := m.registerArena(access); err != nil {
		c.memory.give(at, mem)
		return nil, err
	}
	return m, nil
}

// shareFile passes a file to urdmad and returns its handle.
func (c *Client) shareFile(fd int) (uint32, error) {
	var resp abi.HandleMessage
	_, err := call(c, abi.AddFile, &abi.Header{}, &resp, fd, 0)
	return resp.Handle, err
}

// RegisterMemory registers an existing slice and pins it until Close. If it is part of a file on tmpfs that
// the program maps shared, urdmad maps the file, too. Other memory is read and written through the process's
// /proc/self/mem; the error is EOPNOTSUPP if the system forbids that. With OnDemand b may be memory that the
// program unmaps and maps again (unix.Mmap); the error is EOPNOTSUPP before Linux 6.11.
func (p *PD) RegisterMemory(b []byte, access Access) (*MR, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("verbs: memory of no bytes: %w", syscall.EINVAL)
	}
	m := &MR{pd: p, bytes: b}
	m.pins.Pin(&b[0])
	err := m.registerSlice(access)
	if err != nil || p.ctx.client.dead() {
		m.unpin() // the client may have been lost before the region was in the table
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// RegisterDMABuf registers length bytes at an offset of a dma-buf (ibv_reg_dmabuf_mr(3)), or of a file on tmpfs or
// hugetlbfs, which must be open for reading and writing; it may be closed afterwards. Peers and work requests use the
// address iova for the first byte; it has the same offset in its page. Bytes returns nil. The error is EOPNOTSUPP for
// dma-bufs that only devices can access.
func (p *PD) RegisterDMABuf(f *os.File, offset, length, iova uint64, access Access) (*MR, error) {
	if access&(BindWindows|ZeroBased|OnDemand) != 0 || (offset^iova)%4096 != 0 {
		return nil, fmt.Errorf("verbs: a dma-buf with access %#x at offset %#x and iova %#x: %w", uint32(access), offset, iova,
			syscall.EINVAL)
	}
	request, err := lend(f, offset, length, access&LocalWrite != 0)
	if err != nil {
		return nil, err
	}
	request.Length, request.IOVA = length, iova
	m := &MR{pd: p, mapped: true}
	if err := m.request(access, request, int(f.Fd())); err != nil {
		return nil, err
	}
	return m, nil
}

// AllocNull makes a region without memory (ibv_alloc_null_mr(3)): work requests read 0 at any address, and
// data written there is discarded. Peers can't use it.
func (p *PD) AllocNull() (*MR, error) {
	m := &MR{pd: p}
	if err := m.register(0, &abi.RegMRRequest{Path: abi.PathNull}, -1); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *MR) registerArena(access Access) error {
	if access&OnDemand != 0 {
		return fmt.Errorf("verbs: OnDemand for memory of AllocMemory, which is always there: %w", syscall.EINVAL)
	}
	return m.register(access, &abi.RegMRRequest{Path: abi.PathShared, File: m.file, FileOffset: uint64(m.at.offset)}, -1)
}

// registerSlice registers memory that the program allocated itself.
func (m *MR) registerSlice(access Access) error {
	if access&OnDemand != 0 {
		return m.registerOnDemand(access)
	}
	if m.mapped = m.registerFile(access) == nil; m.mapped {
		return nil
	}
	request := &abi.RegMRRequest{Path: abi.PathFallback}
	copy(request.Why[:], "memory of Go's (AllocMemory gives shared memory)")
	return m.register(access, request, -1)
}

// registerOnDemand also gives urdmad the descriptor through which it asks what is mapped.
func (m *MR) registerOnDemand(access Access) error {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("verbs: on-demand paging: %w", err)
	}
	defer maps.Close()
	m.mapped = false
	return m.register(access, &abi.RegMRRequest{Path: abi.PathOnDemand}, int(maps.Fd()))
}

var errNoFile = errors.New("verbs: no file that urdmad can map")

func (m *MR) registerFile(access Access) error {
	addr, n := addressOf(m.bytes), uint64(len(m.bytes))
	mapping, ok := mappingOf(addr, n)
	if !ok {
		return errNoFile
	}
	fd, done, ok := mapping.descriptor()
	if !ok {
		return errNoFile
	}
	defer done()
	if err := populate(addr, n, access&LocalWrite != 0); err != nil {
		return err
	}
	return m.register(access, &abi.RegMRRequest{Path: abi.PathFile, FileOffset: mapping.offset,
		Inode: mapping.inode, Major: mapping.major, Minor: mapping.minor}, fd)
}

// register registers the region, or replaces an earlier registration; req says by which path urdmad reaches
// the memory.
func (m *MR) register(access Access, req *abi.RegMRRequest, fd int) error {
	addr := addressOf(m.bytes)
	req.Addr, req.Length, req.IOVA = addr, uint64(len(m.bytes)), addr
	if access&ZeroBased != 0 {
		req.IOVA = 0
	}
	return m.request(access, req, fd)
}

// request is register without an address in the program.
func (m *MR) request(access Access, req *abi.RegMRRequest, fd int) error {
	c := m.pd.ctx.client
	req.PD, req.Access, req.Replaces = m.pd.handle, uint32(access), m.handle
	c.making.RLock()
	defer c.making.RUnlock()
	var resp abi.RegMRResponse
	if _, err := call(c, abi.RegMR, req, &resp, fd, 0); err != nil {
		return err
	}
	c.regions.Add(resp.Handle, m) // first, so that lost and Close always find the region
	c.regions.Remove(m.handle)
	m.handle, m.lkey, m.rkey, m.addr = resp.Handle, resp.LKey, resp.RKey, req.IOVA
	return nil
}

// ChangeAccess registers the same memory with other access rights (ibv_rereg_mr(3) with
// IBV_REREG_MR_CHANGE_ACCESS). The region keeps its keys and, if the call fails, its rights. Meanwhile no
// posted work may use it, and no other goroutine may use or close it.
func (m *MR) ChangeAccess(access Access) error {
	if m.handle == abi.NoHandle || len(m.bytes) == 0 {
		return fmt.Errorf("verbs: other rights for a null region or a dma-buf: %w", syscall.EOPNOTSUPP)
	}
	if m.shared {
		return m.registerArena(access)
	}
	return m.registerSlice(access)
}

// Bytes returns the memory itself.
func (m *MR) Bytes() []byte { return m.bytes }

// LKey returns the region's key for scatter/gather elements.
func (m *MR) LKey() uint32 { return m.lkey }

// RKey returns the region's key for peers.
func (m *MR) RKey() uint32 { return m.rkey }

// Addr returns the address of the region's first byte, for SGE and Remote.
func (m *MR) Addr() uint64 { return m.addr }

// Shared reports whether urdmad maps the memory.
func (m *MR) Shared() bool { return m.shared || m.mapped }

// SGE returns an element of n bytes at an offset. urdmad checks bounds: a work request beyond the region
// completes with StatusLocProtErr.
func (m *MR) SGE(offset, n int) SGE {
	return SGE{Addr: m.addr + uint64(offset), Length: uint32(n), LKey: m.lkey}
}

// Remote returns the address and key that a peer needs to write or read from an offset on.
func (m *MR) Remote(offset int) Remote { return Remote{m.addr + uint64(offset), m.rkey} }

// Close deregisters the memory (ibv_dereg_mr(3)). Posted work that uses it fails. A slice of RegisterMemory
// is unpinned, memory of AllocMemory is freed.
func (m *MR) Close() error {
	c := m.pd.ctx.client
	// urdmad deregisters it first and writes nothing there afterwards
	if err := c.destroy(abi.DeregMR, m.handle); err != nil {
		return err
	}
	if !c.regions.Remove(m.handle) {
		return ErrClosed
	}
	m.release()
	return nil
}

func (m *MR) release() {
	m.once.Do(func() {
		if m.shared {
			m.pd.ctx.client.memory.give(m.at, m.whole)
			return
		}
		m.unpin()
	})
}

// unpin is also called when urdmad has ended and no longer writes to the memory.
func (m *MR) unpin() { m.unpinned.Do(m.pins.Unpin) }
