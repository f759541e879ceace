package memif

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Limits for the memory that a peer may make us map for each link.
const (
	maxRegions     = 16
	maxRegionBytes = 1 << 30
)

// createRegion makes the client's shared memory: a memfd that can neither
// shrink nor grow, mapped and populated. The caller owns fd and mem.
func createRegion(size int) (fd int, mem []byte, err error) {
	fd, err = unix.MemfdCreate("urdma-memif", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, nil, fmt.Errorf("memif: memfd_create: %w", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	if err = unix.Ftruncate(fd, int64(size)); err != nil {
		return -1, nil, fmt.Errorf("memif: memfd of %d bytes: %w", size, err)
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return -1, nil, fmt.Errorf("memif: sealing the memfd: %w", err)
	}
	mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return -1, nil, fmt.Errorf("memif: mapping %d bytes: %w", size, err)
	}
	return fd, mem, nil
}

// mapRegion maps a peer's memory after checking that no access to it can fault: it must be ordinary shared
// memory (not hugetlbfs, whose pages can run out at an access), sealed against shrinking, and as large as
// stated. The caller still owns fd.
func mapRegion(fd int, size uint64) ([]byte, error) {
	if size == 0 || size > maxRegionBytes {
		return nil, fmt.Errorf("memif: region of %d bytes, allowed are 1 to %d", size, maxRegionBytes)
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return nil, fmt.Errorf("memif: region is no memfd: %w", err)
	}
	if seals&unix.F_SEAL_SHRINK == 0 {
		return nil, fmt.Errorf("memif: region's memfd has seals %#x, without F_SEAL_SHRINK (a DPDK peer must use "+
			"zero-copy=no)", seals)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		return nil, fmt.Errorf("memif: region is on file system %#x, expected ordinary shared memory (%v)", fs.Type, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("memif: region: %w", err)
	}
	if st.Size < 0 || uint64(st.Size) < size {
		return nil, fmt.Errorf("memif: region claims %d bytes, its memfd has %d", size, st.Size)
	}
	mem, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("memif: mapping %d bytes: %w", size, err)
	}
	return mem, nil
}

// span checks that [offset, offset+length) is in mem and returns it, with no further capacity. ok is false
// otherwise.
func span(mem []byte, offset, length uint32) (b []byte, ok bool) {
	end := uint64(offset) + uint64(length)
	if end > uint64(len(mem)) {
		return nil, false
	}
	return mem[offset:end:end], true
}
