package worker

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// ppollHolding waits like unix.Ppoll but keeps the P in the meantime, so that a wake-up costs no more than
// in C. See bell.ppoll for the reason why that is allowed.
func ppollHolding(fds []unix.PollFd, timeout *unix.Timespec) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(fds))), uintptr(len(fds)),
		uintptr(unsafe.Pointer(timeout)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
