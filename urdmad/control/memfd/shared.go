// Package memfd makes memory files that urdmad shares with a client. They are sealed, so that no
// client can make urdmad's mapping fault.
package memfd

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Shared is a memfd of urdmad that a client maps too.
type Shared struct {
	FD  int    // -1 once CloseFD was called
	Mem []byte // our mapping

	give func() // frees the part of a shared file; nil for a whole file
}

// New makes a zeroed file of some bytes that can neither grow nor shrink.
func New(name string, bytes int) (*Shared, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd: making one: %w", err)
	}
	m := &Shared{FD: fd}
	if err := unix.Ftruncate(fd, int64(bytes)); err != nil {
		m.Close()
		return nil, fmt.Errorf("memfd: making one of %d bytes: %w", bytes, err)
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		m.Close()
		return nil, fmt.Errorf("memfd: sealing: %w", err)
	}
	if m.Mem, err = unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		m.Close()
		return nil, fmt.Errorf("memfd: mapping %d bytes: %w", bytes, err)
	}
	return m, nil
}

// CloseFD closes the descriptor once the client has its own.
func (m *Shared) CloseFD() {
	if m.FD >= 0 {
		_ = unix.Close(m.FD) // nothing to do about a failed close
		m.FD = -1
	}
}

// TakeFD transfers the descriptor to the caller; -1 if there is none.
func (m *Shared) TakeFD() int {
	fd := m.FD
	m.FD = -1
	return fd
}

// Close unmaps the file and closes the descriptor. A nil Shared is allowed.
func (m *Shared) Close() {
	if m == nil {
		return
	}
	m.CloseFD()
	if m.give != nil {
		m.give()
		m.give, m.Mem = nil, nil
		return
	}
	if m.Mem != nil {
		_ = unix.Munmap(m.Mem) // fails only for what is not a mapping
		m.Mem = nil
	}
}
