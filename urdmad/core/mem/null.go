package mem

import (
	"fmt"
	"math"
	"sync"

	"golang.org/x/sys/unix"
)

// zeroPages is the memory from which null regions are read: as long as one scatter/gather element can be,
// and all of it the kernel's one zero page.
type zeroPages struct {
	mu    sync.Mutex
	bytes []byte // nil until it is mapped
}

// get maps it for the first null region, or for a later one if the address space was exhausted then.
func (z *zeroPages) get() ([]byte, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.bytes != nil {
		return z.bytes, nil
	}
	b, err := unix.Mmap(-1, 0, math.MaxUint32, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("mem: address space for null regions: %w", err)
	}
	z.bytes = b
	return b, nil
}

var zeros zeroPages

// NewNull returns a region without memory (ibv_alloc_null_mr(3)): its owner's work requests read 0 at any
// address in it, and what they write there is discarded. Peers have no access to it.
func NewNull(pd uint64) (*Region, error) {
	b, err := zeros.get()
	if err != nil {
		return nil, err
	}
	return &Region{PD: pd, Access: LocalWrite, bytes: b, length: math.MaxUint64, shared: true, null: true}, nil
}

// Null reports whether the region has no memory: nothing may be written to its Bytes.
func (r *Region) Null() bool { return r.null }
