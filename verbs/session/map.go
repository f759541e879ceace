package session

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Map maps all of a descriptor's memory and closes the descriptor.
func Map(fd, bytes int) ([]byte, error) {
	defer unix.Close(fd)
	mem, err := unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("verbs: mapping %d bytes: %w", bytes, err)
	}
	return mem, nil
}

// Unmap unmaps memory that Map returned; nil is ignored.
func Unmap(mem []byte) {
	if mem != nil {
		_ = unix.Munmap(mem) // fails only for an address that is not mapped
	}
}
