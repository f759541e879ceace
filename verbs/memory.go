package verbs

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"

	"urdma/verbs/abi"
)

// PD is a protection domain (ibv_alloc_pd(3)): queue pairs reach only memory
// regions of their own.
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

// Context is the device that the domain belongs to.
func (p *PD) Context() *Context { return p.ctx }

// Close releases the domain; EBUSY while it has memory regions or queue pairs
// (ibv_dealloc_pd(3)).
func (p *PD) Close() error { return p.ctx.client.callHandle(abi.DeallocPD, p.handle) }

// SGE is a scatter/gather element: Length bytes at Addr of the memory region
// whose lkey is LKey. MR.SGE makes one.
type SGE = abi.SGE

// Remote is where in a peer's memory a Write or Read goes. Peers tell each
// other such addresses in messages or private data.
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
	file           uint32         // where shared, urdmad's handle of the memfd
	at             extent         // likewise: where the memory lies in it
	whole          []byte         // likewise: the mapping, whole pages
	pins           runtime.Pinner // otherwise
	mapped         bool           // likewise: urdmad maps the program's file
	unpinned, once sync.Once
}

// AllocMemory makes n bytes of zeroed, page-aligned memory that urdmad maps
// too, and registers it. It lies outside Go's heap and is no concern of the
// garbage collector: Close gives it back, and it must not be touched
// afterwards.
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

// shareFile shows urdmad a file and returns its handle.
func (c *Client) shareFile(fd int) (uint32, error) {
	var resp abi.HandleMessage
	_, err := call(c, abi.AddFile, &abi.Header{}, &resp, fd, 0)
	return resp.Handle, err
}

// RegisterMemory registers a slice where it lies and keeps it there until
// Close. What the program maps shared of a file on tmpfs urdmad maps, too; other
// memory it reads and writes by the process's /proc/self/mem, and the error is
// EOPNOTSUPP where the system forbids that.
func (p *PD) RegisterMemory(b []byte, access Access) (*MR, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("verbs: memory of no bytes: %w", syscall.EINVAL)
	}
	m := &MR{pd: p, bytes: b}
	m.pins.Pin(&b[0])
	err := m.registerSlice(access)
	if err != nil || p.ctx.client.dead() {
		m.unpin() // lose may have passed before the region was in the table
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// AllocNull makes a region of no memory (ibv_alloc_null_mr(3)): work requests read 0
// at any address of it, and what they write there is lost. Peers can't name it.
func (p *PD) AllocNull() (*MR, error) {
	m := &MR{pd: p}
	if err := m.register(0, &abi.RegMRRequest{Path: abi.PathNull}, -1); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *MR) registerArena(access Access) error {
	return m.register(access, &abi.RegMRRequest{Path: abi.PathShared, File: m.file, FileOffset: uint64(m.at.offset)}, -1)
}

// registerSlice registers memory of the program's own.
func (m *MR) registerSlice(access Access) error {
	if m.mapped = m.registerFile(access) == nil; m.mapped {
		return nil
	}
	request := &abi.RegMRRequest{Path: abi.PathFallback}
	copy(request.Why[:], "memory of Go's (AllocMemory gives shared memory)")
	return m.register(access, request, -1)
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

// register makes the region, in the place of the one that it was; req says by which path.
func (m *MR) register(access Access, req *abi.RegMRRequest, fd int) error {
	c, addr := m.pd.ctx.client, addressOf(m.bytes)
	req.PD, req.Access, req.Addr, req.Length = m.pd.handle, uint32(access), addr, uint64(len(m.bytes))
	req.IOVA, req.Replaces = addr, m.handle
	if access&ZeroBased != 0 {
		req.IOVA = 0
	}
	c.making.RLock()
	defer c.making.RUnlock()
	var resp abi.RegMRResponse
	if _, err := call(c, abi.RegMR, req, &resp, fd, 0); err != nil {
		return err
	}
	c.regions.Add(resp.Handle, m) // first: lost and Close find the region at any time
	c.regions.Remove(m.handle)
	m.handle, m.lkey, m.rkey, m.addr = resp.Handle, resp.LKey, resp.RKey, req.IOVA
	return nil
}

// ChangeAccess registers the same memory with other rights (ibv_rereg_mr(3) with
// IBV_REREG_MR_CHANGE_ACCESS). The region keeps its keys; where it fails, its rights,
// too. No posted work may name it meanwhile, nor another goroutine use or close it.
func (m *MR) ChangeAccess(access Access) error {
	if m.handle == abi.NoHandle || len(m.bytes) == 0 {
		return fmt.Errorf("verbs: other rights for a null region: %w", syscall.EOPNOTSUPP)
	}
	if m.shared {
		return m.registerArena(access)
	}
	return m.registerSlice(access)
}

// Bytes is the memory itself.
func (m *MR) Bytes() []byte { return m.bytes }

// LKey names the region in scatter/gather elements.
func (m *MR) LKey() uint32 { return m.lkey }

// RKey names the region to peers.
func (m *MR) RKey() uint32 { return m.rkey }

// Addr is the address of the region's first byte, as SGE and Remote have it.
func (m *MR) Addr() uint64 { return m.addr }

// Shared tells that urdmad maps the memory.
func (m *MR) Shared() bool { return m.shared || m.mapped }

// SGE names n bytes at an offset. Bounds are urdmad's to check: a work request
// that goes past the region completes with StatusLocProtErr.
func (m *MR) SGE(offset, n int) SGE {
	return SGE{Addr: m.addr + uint64(offset), Length: uint32(n), LKey: m.lkey}
}

// Remote is what a peer needs to write or read from an offset on.
func (m *MR) Remote(offset int) Remote { return Remote{m.addr + uint64(offset), m.rkey} }

// Close deregisters the memory (ibv_dereg_mr(3)). Posted work that names it
// fails. A slice of RegisterMemory is the caller's again, memory of AllocMemory
// is gone.
func (m *MR) Close() error {
	c := m.pd.ctx.client
	// urdmad lets go first: after that nobody writes there any more.
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

// unpin also follows the end of urdmad, which then writes there no more.
func (m *MR) unpin() { m.unpinned.Do(m.pins.Unpin) }
