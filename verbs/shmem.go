package verbs

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// This file finds the file of memory that the program maps shared, so that urdmad can map it, too.
// verbs/lib/memory/file.c does the same for C programs, and explains why an open descriptor is used as it is.

// fileMapping is a part of a file that is mapped shared.
type fileMapping struct {
	link         string // in map_files (proc(5))
	major, minor uint32
	inode        uint64
	offset       uint64
}

// mappingOf finds the file mapping that contains n bytes at addr.
func mappingOf(addr, n uint64) (m fileMapping, ok bool) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return m, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var start, end, offset uint64
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s %x %x:%x %d", &start, &end, &rights, &offset, &m.major, &m.minor,
			&m.inode); err != nil {
			return m, false
		}
		if addr >= end {
			continue
		}
		m.link, m.offset = fmt.Sprintf("/proc/self/map_files/%x-%x", start, end), offset+addr-start
		return m, addr >= start && n <= end-addr && strings.HasSuffix(rights, "s") && m.inode != 0
	}
	return m, false
}

// is reports whether a descriptor refers to the file, and the file is on tmpfs.
func (m *fileMapping) is(fd int) bool {
	var st unix.Stat_t
	var fs unix.Statfs_t
	return unix.Fstat(fd, &st) == nil && st.Ino == m.inode && unix.Major(st.Dev) == m.major &&
		unix.Minor(st.Dev) == m.minor &&
		unix.Fstatfs(fd, &fs) == nil && fs.Type == unix.TMPFS_MAGIC
}

// descriptor returns a descriptor of the file, open for reading and writing; the caller calls done after
// using it.
func (m *fileMapping) descriptor() (fd int, done func(), ok bool) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, nil, false
	}
	open := false
	for _, e := range entries {
		if fd, err = strconv.Atoi(e.Name()); err != nil || !m.is(fd) {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err == nil && flags&unix.O_ACCMODE == unix.O_RDWR {
			return fd, func() {}, true
		}
		open = true
	}
	if open {
		return 0, nil, false
	}
	path, err := os.Readlink(m.link)
	if err != nil {
		return 0, nil, false
	}
	if fd, ok = m.open(path); !ok {
		fd, ok = m.open(m.link) // few processes have permission for this link
	}
	return fd, func() { _ = unix.Close(fd) }, ok
}

// open opens the file at a path, if it is the right one.
func (m *fileMapping) open(path string) (fd int, ok bool) {
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	defer unix.Close(at)
	if !m.is(at) {
		return 0, false
	}
	fd, err = unix.Open(fmt.Sprintf("/proc/self/fd/%d", at), unix.O_RDWR|unix.O_CLOEXEC, 0)
	return fd, err == nil
}

// populate populates every page of n bytes at addr, so that urdmad allocates none.
func populate(addr, n uint64, writes bool) error {
	page := uint64(unix.Getpagesize())
	first, last := addr&^(page-1), (addr+n+page-1)&^(page-1)
	advice := unix.MADV_POPULATE_READ
	if writes {
		advice = unix.MADV_POPULATE_WRITE
	}
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(first), uintptr(last-first), uintptr(advice)); errno != 0 &&
		errno != unix.EINVAL {
		return errno
	}
	return nil
}

// lend checks a file or dma-buf that the program registers by its descriptor, and populates its pages.
func lend(f *os.File, offset, length uint64, writes bool) (*abi.RegMRRequest, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, fmt.Errorf("verbs: dma-buf: %w", err)
	}
	if st.Size == 0 { // a dma-buf before Linux 5.19
		if end, err := unix.Seek(int(f.Fd()), 0, unix.SEEK_END); err == nil {
			st.Size = end
		}
	}
	if length == 0 || offset > uint64(st.Size) || length > uint64(st.Size)-offset {
		return nil, fmt.Errorf("verbs: %d bytes at offset %d of a dma-buf of %d bytes: %w", length, offset, st.Size, unix.EINVAL)
	}
	skip := offset & uint64(max(4096, st.Blksize)-1) // huge pages can only be mapped whole
	b, err := unix.Mmap(int(f.Fd()), int64(offset-skip), int(length+skip), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("verbs: only devices can access the dma-buf: %w: %w", err, unix.EOPNOTSUPP)
	}
	defer unix.Munmap(b) //nolint:errcheck // it was mapped
	if err := populate(addressOf(b), uint64(len(b)), writes); err != nil {
		return nil, fmt.Errorf("verbs: pages of a dma-buf: %w", err)
	}
	return &abi.RegMRRequest{Path: abi.PathFile, FileOffset: offset, Inode: st.Ino, Major: unix.Major(st.Dev),
		Minor: unix.Minor(st.Dev)}, nil
}
