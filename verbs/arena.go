package verbs

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// arena allocates page-aligned ranges of one memfd, which urdmad also maps. The file only grows and is sealed
// against shrinking, so urdmad's mapping can't fault. Freed ranges are punched out, so their memory returns
// to the system at once.
type arena struct {
	mu     sync.Mutex
	fd     int // 0 until the first use, -1 after close
	handle uint32
	size   int64
	free   []extent // sorted by offset; no two are adjacent
}

// extent is a range of the file, in bytes.
type extent struct{ offset, length int64 }

// file returns urdmad's handle of the memfd. At first use it creates the memfd and calls share, which passes
// the descriptor to urdmad.
func (a *arena) file(share func(fd int) (handle uint32, err error)) (uint32, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fd > 0 {
		return a.handle, nil
	}
	if a.fd < 0 {
		return 0, os.ErrClosed
	}
	fd, err := unix.MemfdCreate("urdma-memory", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return 0, fmt.Errorf("verbs: memfd: %w", err)
	}
	var handle uint32
	if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL); err == nil {
		handle, err = share(fd)
	}
	if err != nil {
		_ = unix.Close(fd) // it was never used
		return 0, fmt.Errorf("verbs: sharing a memfd: %w", err)
	}
	a.fd, a.handle = fd, handle
	return a.handle, nil
}

// take maps at least n bytes and populates their pages, so that a lack of memory is an error here rather than
// a signal later.
func (a *arena) take(n int) (extent, []byte, error) {
	page := int64(os.Getpagesize())
	length := (int64(n) + page - 1) &^ (page - 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fd < 0 {
		return extent{}, nil, os.ErrClosed
	}
	at, err := a.reserve(length)
	if err != nil {
		return extent{}, nil, err
	}
	err = a.populate(at)
	var mem []byte
	if err == nil {
		mem, err = unix.Mmap(a.fd, at.offset, int(at.length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		a.put(at)
		return extent{}, nil, fmt.Errorf("verbs: memory of %d bytes: %w", n, err)
	}
	return at, mem, nil
}

// populate allocates the pages piece by piece: in Debian 12's kernel any signal, such as a profiler's,
// interrupts the call, which then undoes its work.
func (a *arena) populate(at extent) error {
	const piece = 4 << 20
	for done := int64(0); done < at.length; {
		n := min(piece, at.length-done)
		switch err := unix.Fallocate(a.fd, 0, at.offset+done, n); err {
		case nil:
			done += n
		case unix.EINTR:
		default:
			return err
		}
	}
	return nil
}

// reserve finds the first free range that is long enough, or grows the file.
func (a *arena) reserve(length int64) (extent, error) {
	for i, e := range a.free {
		if e.length < length {
			continue
		}
		a.free[i] = extent{e.offset + length, e.length - length}
		if e.length == length {
			a.free = slices.Delete(a.free, i, i+1)
		}
		return extent{e.offset, length}, nil
	}
	if err := unix.Ftruncate(a.fd, a.size+length); err != nil {
		return extent{}, fmt.Errorf("verbs: memory of %d bytes: %w", length, err)
	}
	at := extent{a.size, length}
	a.size += length
	return at, nil
}

// give frees a range returned by take.
func (a *arena) give(at extent, mem []byte) {
	_ = unix.Munmap(mem) // fails only for an address that is not mapped
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fd > 0 {
		a.put(at)
	}
}

// put frees a range and joins it with its neighbours.
func (a *arena) put(at extent) {
	// If this fails, the pages stay allocated until the file is closed.
	_ = unix.Fallocate(a.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at.offset, at.length)
	i, _ := slices.BinarySearchFunc(a.free, at.offset, func(e extent, offset int64) int { return int(e.offset - offset) })
	a.free = slices.Insert(a.free, i, at)
	if i+1 < len(a.free) && at.offset+at.length == a.free[i+1].offset {
		a.free[i].length += a.free[i+1].length
		a.free = slices.Delete(a.free, i+1, i+2)
	}
	if i > 0 && a.free[i-1].offset+a.free[i-1].length == at.offset {
		a.free[i-1].length += a.free[i].length
		a.free = slices.Delete(a.free, i, i+1)
	}
}

// close closes the memfd; ranges in use stay mapped until they are freed.
func (a *arena) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fd > 0 {
		_ = unix.Close(a.fd) // nothing to do about a failed close
	}
	a.fd = -1
}
