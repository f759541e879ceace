package control

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// sharedMemory is a memfd of ours that a client maps too. It is sealed, so no
// client can make our mapping fault.
type sharedMemory struct {
	fd  int
	mem []byte
}

func newSharedMemory(name string, bytes int) (*sharedMemory, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("control: memfd: %w", err)
	}
	m := &sharedMemory{fd: fd}
	if err := unix.Ftruncate(fd, int64(bytes)); err != nil {
		m.close()
		return nil, fmt.Errorf("control: memfd of %d bytes: %w", bytes, err)
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		m.close()
		return nil, fmt.Errorf("control: sealing: %w", err)
	}
	if m.mem, err = unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		m.close()
		return nil, fmt.Errorf("control: mapping %d bytes: %w", bytes, err)
	}
	return m, nil
}

// newQueueMemory takes what a queue needs and makes its shared memory.
func (x *Session) newQueueMemory(name string, bill *amounts, bytes int) (*sharedMemory, error) {
	if err := x.take(bill); err != nil {
		return nil, err
	}
	m, err := newSharedMemory(name, bytes)
	if err != nil {
		x.give(bill)
	}
	return m, err
}

// closeFD gives the descriptor up once the client has its own.
func (m *sharedMemory) closeFD() {
	if m.fd >= 0 {
		_ = unix.Close(m.fd) // nothing to do about a failed close
		m.fd = -1
	}
}

func (m *sharedMemory) close() {
	if m == nil {
		return
	}
	m.closeFD()
	if m.mem != nil {
		_ = unix.Munmap(m.mem) // fails only for what is not a mapping
		m.mem = nil
	}
}
