package process

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Mappings answers whether a client's process itself could access an address now. Access through
// /proc/self/mem alone ignores mprotect(2): the kernel lets a debugger write to read-only pages.
type Mappings struct {
	file *os.File
	raw  syscall.RawConn

	mu    sync.Mutex
	query procmapQuery
	errno syscall.Errno
	ask   func(fd uintptr) // calls the kernel with query; made once, so that Allows allocates nothing
}

// procmapQuery is struct procmap_query of linux/fs.h.
type procmapQuery struct {
	size, flags, addr                      uint64
	start, end, vmaFlags, pageSize, offset uint64
	inode                                  uint64
	major, minor, nameSize, buildIDSize    uint32
	name, buildID                          uint64
}

// Of linux/fs.h. Without a flag that asks for the next mapping, the kernel returns only one that
// contains the address and has these rights.
const (
	procmapQueryIoctl = 0xc0686611 // _IOWR('f', 17, struct procmap_query)
	vmaReadable       = 1
	vmaWritable       = 2
)

// NewMappings takes ownership of f, which CheckMaps has accepted, unless it returns an error: the
// kernel is older than 6.11.
func NewMappings(f *os.File) (*Mappings, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	m := &Mappings{file: f, raw: raw}
	m.ask = func(fd uintptr) {
		_, _, m.errno = unix.Syscall(unix.SYS_IOCTL, fd, procmapQueryIoctl, uintptr(unsafe.Pointer(&m.query)))
	}
	if _, err := m.end(0, 0); err != nil && !errors.Is(err, syscall.ENOENT) {
		return nil, fmt.Errorf("control: no PROCMAP_QUERY, which Linux has from 6.11 on (%w): %v", syscall.EOPNOTSUPP, err)
	}
	return m, nil
}

// Close makes Allows refuse everything.
func (m *Mappings) Close() error { return m.file.Close() }

// Allows returns an error unless the process has mapped all n bytes at addr, readable or writable.
func (m *Mappings) Allows(addr uint64, n int, write bool) error {
	right := uint64(vmaReadable)
	if write {
		right = vmaWritable
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for at, end := addr, addr+uint64(n); at < end; {
		next, err := m.end(at, right)
		if err != nil {
			return fmt.Errorf("control: the client has not mapped %#x, or not for this access: %w", at, err)
		}
		at = next
	}
	return nil
}

// end returns the end of the mapping that contains addr; ENOENT if none does, or not with these rights.
func (m *Mappings) end(addr, rights uint64) (uint64, error) {
	for {
		m.query = procmapQuery{size: uint64(unsafe.Sizeof(m.query)), flags: rights, addr: addr}
		if err := m.raw.Control(m.ask); err != nil {
			return 0, err
		}
		switch m.errno {
		case 0:
			return m.query.end, nil
		case unix.EINTR:
		default:
			return 0, m.errno
		}
	}
}
