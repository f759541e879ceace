// Package mapped maps the memory that urdmad shares with a Go program: doorbells
// and the queues that it makes. What a response says of a queue is held against the
// length of its memory before anybody follows it.
//
// The package must not know what the queues are for.
package mapped

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// Whole maps all of a descriptor's memory and closes the descriptor.
func Whole(fd, bytes int) ([]byte, error) {
	defer unix.Close(fd)
	mem, err := unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("verbs: mapping %d bytes: %w", bytes, err)
	}
	return mem, nil
}

// Free unmaps what was mapped here; nil is nothing.
func Free(mem []byte) {
	if mem != nil {
		_ = unix.Munmap(mem) // fails only for what is not a mapping
	}
}

// QP maps a queue pair's queues, of which either may be absent, for one of so many
// workers, and closes the descriptor.
func QP(r *abi.QPResponse, fd, workers int) ([]byte, error) {
	if !fits(&r.SQ, r.Bytes) || !fits(&r.RQ, r.Bytes) || int(r.Worker) >= workers {
		_ = unix.Close(fd) // of no use
		return nil, fmt.Errorf("verbs: queues of %d and %d slots in %d bytes of worker %d: %w", r.SQ.Entries, r.RQ.Entries, r.Bytes, r.Worker, syscall.EPROTO)
	}
	return Whole(fd, int(r.Bytes))
}

// SRQ maps a shared receive queue and closes the descriptor.
func SRQ(r *abi.SRQResponse, fd int) ([]byte, error) {
	if !fits(&r.RQ, r.Bytes) || r.MaxWR > r.RQ.Entries {
		_ = unix.Close(fd) // of no use
		return nil, fmt.Errorf("verbs: shared receive queue of %d slots in %d bytes: %w", r.RQ.Entries, r.Bytes, syscall.EPROTO)
	}
	return Whole(fd, int(r.Bytes))
}

// CQ maps a completion queue and closes the descriptor.
func CQ(r *abi.CQResponse, fd int) ([]byte, error) {
	need := uint64(r.EntriesOffset) + uint64(r.Entries)*uint64(abi.Size[abi.CQE]())
	if r.Entries == 0 || r.Entries&(r.Entries-1) != 0 || need > uint64(r.Bytes) {
		_ = unix.Close(fd) // of no use
		return nil, fmt.Errorf("verbs: completion ring of %d entries in %d bytes: %w", r.Entries, r.Bytes, syscall.EPROTO)
	}
	return Whole(fd, int(r.Bytes))
}

// fits reports whether a queue lies within its memory.
func fits(l *abi.QueueLayout, bytes uint32) bool {
	head := uint64(l.HeadOffset) + uint64(abi.Size[abi.SQRing]()) // a receive queue's is as long
	end := uint64(l.SlotsOffset) + uint64(l.Entries)*uint64(l.Stride)
	return l.Entries&(l.Entries-1) == 0 && max(head, end) <= uint64(bytes)
}

// Room makes sure of room for one more descriptor. It is for requests that can't be
// undone if their answer finds none.
func Room() error {
	fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
	if errors.Is(err, unix.EBADF) {
		return nil // 0 itself is free
	}
	if err != nil {
		return fmt.Errorf("verbs: room for a descriptor: %w", err)
	}
	return unix.Close(fd)
}
