package verbs

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// arena is the client's memory file: urdmad has a copy of its descriptor and
// maps what is registered of it.
type arena struct {
	client *Client
	mu     sync.Mutex
	fd     int
	handle uint32
	size   uint64
	mapped map[uint64][]byte // by offset in the file
	holes  map[int][]uint64  // free offsets by length
}

// alloc maps n bytes, rounded up to pages, of the file.
func (a *arena) alloc(n int) (b []byte, at uint64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.open(); err != nil {
		return nil, 0, err
	}
	page := unix.Getpagesize()
	n = (n + page - 1) &^ (page - 1)
	if free := a.holes[n]; len(free) > 0 {
		at = free[len(free)-1]
		a.holes[n] = free[:len(free)-1]
	} else {
		at = a.size
		if err := unix.Ftruncate(a.fd, int64(at)+int64(n)); err != nil {
			return nil, 0, fmt.Errorf("verbs: growing the memory file to %d bytes: %w", at+uint64(n), err)
		}
		a.size += uint64(n)
	}
	if b, err = unix.Mmap(a.fd, int64(at), n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		a.holes[n] = append(a.holes[n], at)
		return nil, 0, fmt.Errorf("verbs: mapping %d bytes: %w", n, err)
	}
	a.mapped[at] = b
	return b, at, nil
}

// open makes the file, sealed so that urdmad's mapping can never lose pages,
// and shares it.
func (a *arena) open() error {
	if a.mapped != nil {
		return nil
	}
	fd, err := unix.MemfdCreate("urdma-memory", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return fmt.Errorf("verbs: memory file: %w", err)
	}
	if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err == nil {
		var req abi.Header
		var resp abi.HandleMessage
		_, err = call(a.client, abi.AddFile, &req, &resp, fd)
		a.handle = resp.Handle
	}
	if err != nil {
		_ = unix.Close(fd) // nothing to do about a failed close
		return fmt.Errorf("verbs: sharing the memory file: %w", err)
	}
	a.fd, a.mapped, a.holes = fd, map[uint64][]byte{}, map[int][]uint64{}
	return nil
}

// free gives a mapping and its pages back.
func (a *arena) free(at uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.mapped[at]
	if b == nil {
		return
	}
	delete(a.mapped, at)
	n := len(b)
	_ = unix.Munmap(b) // fails only for what is not a mapping
	if unix.Fallocate(a.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(at), int64(n)) == nil {
		a.holes[n] = append(a.holes[n], at) // zeroed; else it stays unused
	}
}

// close forgets the file. Mappings stay: the program may hold slices of them.
func (a *arena) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mapped != nil && a.fd >= 0 {
		_ = unix.Close(a.fd) // nothing to do about a failed close
		a.fd = -1
	}
}
