package mem

import (
	"fmt"
	"math"
	"sync"

	"golang.org/x/sys/unix"
)

// zeroPages is what null regions are read from: as much as one scatter/gather element
// can name, all of it the kernel's one page of zeros.
type zeroPages struct {
	mu    sync.Mutex
	bytes []byte // nil until there was address space for it
}

// get maps them for the first null region, or for a later one if there was no room
// then.
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

// NewNull describes a region of no memory (ibv_alloc_null_mr(3)): its owner's work
// requests read 0 at any address of it, and what they write there is lost. Peers have
// no right to it.
func NewNull(pd uint64) (*Region, error) {
	b, err := zeros.get()
	if err != nil {
		return nil, err
	}
	return &Region{PD: pd, Access: LocalWrite, bytes: b, length: math.MaxUint64, shared: true, null: true}, nil
}

// Null reports a region of no memory: nothing may be written to its Bytes.
func (r *Region) Null() bool { return r.null }
