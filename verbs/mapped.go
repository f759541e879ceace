package verbs

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
	"urdma/verbs/session"
)

// Every queue layout in a response is checked against the length of its memory before it is used.

// mapQP maps a queue pair's queues, either of which may be absent, and closes the descriptor. workers is the
// number of urdmad's workers, for checking.
func mapQP(r *abi.QPResponse, fd, workers int) ([]byte, error) {
	if !fits(&r.SQ, r.Bytes) || !fits(&r.RQ, r.Bytes) || int(r.Worker) >= workers {
		_ = unix.Close(fd) // no longer needed
		return nil, fmt.Errorf("verbs: queues of %d and %d slots in %d bytes of worker %d: %w", r.SQ.Entries, r.RQ.Entries,
			r.Bytes, r.Worker, syscall.EPROTO)
	}
	return session.Map(fd, int(r.Bytes))
}

// mapSRQ maps a shared receive queue and closes the descriptor.
func mapSRQ(r *abi.SRQResponse, fd int) ([]byte, error) {
	if !fits(&r.RQ, r.Bytes) || r.MaxWR > r.RQ.Entries {
		_ = unix.Close(fd) // no longer needed
		return nil, fmt.Errorf("verbs: shared receive queue of %d slots in %d bytes: %w", r.RQ.Entries, r.Bytes,
			syscall.EPROTO)
	}
	return session.Map(fd, int(r.Bytes))
}

// mapCQ maps a completion queue and closes the descriptor.
func mapCQ(r *abi.CQResponse, fd int) ([]byte, error) {
	need := uint64(r.EntriesOffset) + uint64(r.Entries)*uint64(abi.Size[abi.CQE]())
	if r.Entries == 0 || r.Entries&(r.Entries-1) != 0 || need > uint64(r.Bytes) {
		_ = unix.Close(fd) // no longer needed
		return nil, fmt.Errorf("verbs: completion ring of %d entries in %d bytes: %w", r.Entries, r.Bytes, syscall.EPROTO)
	}
	return session.Map(fd, int(r.Bytes))
}

// fits reports whether a queue lies within its memory.
func fits(l *abi.QueueLayout, bytes uint32) bool {
	head := uint64(l.HeadOffset) + uint64(abi.Size[abi.SQRing]()) // a receive queue's head is as long
	end := uint64(l.SlotsOffset) + uint64(l.Entries)*uint64(l.Stride)
	return l.Entries&(l.Entries-1) == 0 && max(head, end) <= uint64(bytes)
}

// descriptorRoom checks that there is room for one more descriptor, before requests that can't be undone if
// their response's descriptor is lost.
func descriptorRoom() error {
	fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
	if errors.Is(err, unix.EBADF) {
		return nil // 0 itself is free
	}
	if err != nil {
		return fmt.Errorf("verbs: room for a descriptor: %w", err)
	}
	return unix.Close(fd)
}
