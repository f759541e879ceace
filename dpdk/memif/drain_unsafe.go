package memif

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// drain makes the interrupt unreadable. Package unix would allocate memory for it.
func (i *interrupt) drain() {
	var count [8]byte
	part := unix.Iovec{Base: &count[0], Len: uint64(len(count))}
	const here = ^uintptr(0) // the file's position, of which an eventfd has none
	_, _, _ = unix.RawSyscall6(unix.SYS_PREADV2, uintptr(i.fd), uintptr(unsafe.Pointer(&part)), 1, here, 0,
		unix.RWF_NOWAIT)
}
