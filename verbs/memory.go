package verbs

import (
	"fmt"
	"runtime"
	"sync"

	"urdma/verbs/abi"
)

// Access says what a memory region may be used for, enum ibv_access_flags.
// Reading it locally is always allowed.
type Access uint32

// Rights to memory. RemoteWrite needs LocalWrite.
const (
	LocalWrite  Access = abi.AccessLocalWrite  // receives and results of Reads
	RemoteWrite Access = abi.AccessRemoteWrite // the peer's RDMA Writes
	RemoteRead  Access = abi.AccessRemoteRead  // the peer's RDMA Reads
)

// MR is a memory region.
type MR struct {
	c      *Client
	handle uint32
	bytes  []byte
	addr   uint64
	key    uint32

	pin  runtime.Pinner
	file bool // bytes are the arena's, at offset at
	at   uint64
	once sync.Once
	err  error
}

// Bytes is the registered memory. That of AllocMemory is not Go's: after Close
// it must not be touched.
func (m *MR) Bytes() []byte { return m.bytes }

// Addr is the address of the first byte, as work requests and peers name it.
func (m *MR) Addr() uint64 { return m.addr }

// Key is what a peer needs beside the address: RemoteAddr and RemoteKey of its
// requests.
func (m *MR) Key() uint32 { return m.key }

// Segment is a part of a memory region, an element of a scatter/gather list.
type Segment = abi.SGE

// Segment names n bytes from off on. A part outside the region gives a request
// that fails with LocalProtect.
func (m *MR) Segment(off, n int) Segment {
	return Segment{Addr: m.addr + uint64(off), Length: uint32(n), LKey: m.key}
}

// Slice is Segment as the list of one that most requests have.
func (m *MR) Slice(off, n int) []Segment { return []Segment{m.Segment(off, n)} }

// AllocMemory makes and registers n bytes of zeroed memory that urdmad maps.
// n is rounded up to whole pages in what it costs, not in what is registered.
func (p *PD) AllocMemory(n int, access Access) (*MR, error) {
	if n <= 0 {
		return nil, fmt.Errorf("%w: %d bytes of memory", ErrRequest, n)
	}
	a := &p.dev.c.arena
	b, at, err := a.alloc(n)
	if err != nil {
		return nil, err
	}
	m := &MR{c: p.dev.c, bytes: b[:n:n], addr: addressOf(b), file: true, at: at}
	if err := m.register(p, access); err != nil {
		a.free(at)
		return nil, err
	}
	return m, nil
}

// Register registers a slice, which stays pinned until Close. It must not be
// empty. Many requests on such memory are slower than on AllocMemory's.
func (p *PD) Register(b []byte, access Access) (*MR, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: registering an empty slice", ErrRequest)
	}
	m := &MR{c: p.dev.c, bytes: b}
	m.pin.Pin(&b[0])
	m.addr = addressOf(b)
	if err := m.register(p, access); err != nil {
		m.pin.Unpin()
		return nil, err
	}
	if !m.c.pinned.add(m) {
		leaked.add(m) // the client was closed just now; urdmad may not know yet
		return nil, ErrClosed
	}
	return m, nil
}

func (m *MR) register(p *PD, access Access) error {
	req := abi.RegMRRequest{PD: p.handle, Access: uint32(access), Addr: m.addr, IOVA: m.addr, Length: uint64(len(m.bytes)),
		Path: abi.PathFallback}
	if m.file {
		req.Path, req.File, req.FileOffset = abi.PathShared, m.c.arena.handle, m.at
	}
	var resp abi.RegMRResponse
	if _, err := call(m.c, abi.RegMR, &req, &resp); err != nil {
		return fmt.Errorf("verbs: register %d bytes: %w", len(m.bytes), err)
	}
	m.handle, m.key = resp.Handle, resp.LKey
	return nil
}

// Close deregisters the memory. Requests that use it should have completed.
func (m *MR) Close() error {
	m.once.Do(func() {
		if m.err = release(m.c, abi.DeregMR, m.handle); m.err != nil {
			m.err = fmt.Errorf("verbs: deregister: %w", m.err)
			return // urdmad may still write: keep the memory
		}
		if m.file {
			m.c.arena.free(m.at)
			return
		}
		m.c.pinned.remove(m)
		m.pin.Unpin()
	})
	return m.err
}

// pinned are the regions of Go's memory. They are deregistered before the client
// hangs up, because only the answer says that urdmad writes there no more.
type pinned struct {
	mu     sync.Mutex
	all    map[*MR]struct{}
	closed bool
}

// leaked keeps what could not be deregistered pinned for ever.
var leaked pinned

func (p *pinned) add(m *MR) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if p.all == nil {
		p.all = map[*MR]struct{}{}
	}
	p.all[m] = struct{}{}
	return true
}

func (p *pinned) remove(m *MR) {
	p.mu.Lock()
	delete(p.all, m)
	p.mu.Unlock()
}

func (p *pinned) close(alive bool) {
	p.mu.Lock()
	p.closed = true
	all := p.all
	p.all = nil
	p.mu.Unlock()
	for m := range all {
		switch {
		case !alive: // urdmad is dead, and writes nothing
			m.pin.Unpin()
		case m.Close() != nil:
			leaked.add(m)
		}
	}
}
