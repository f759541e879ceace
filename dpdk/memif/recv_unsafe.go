package memif

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// receive is recv(2) without waiting. Package unix would also ask for the sender's address, and allocate memory for it.
func receive(fd int, b *[64]byte) (n int, err error) {
	got, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(b)), uintptr(len(b)),
		unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(got), nil
}
