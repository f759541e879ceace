package udp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	unix.Msghdr
	length uint32 // bytes received or sent
	_      [4]byte
}

// recvmmsg and sendmmsg are raw system calls: the worker's thread keeps its P, as it does while it sleeps
// (package worker). The sockets are non-blocking, so a call takes only the time that the kernel needs to copy
// the bytes.

func recvmmsg(fd int, m []mmsghdr) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(m))),
		uintptr(len(m)),
		unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

func sendmmsg(fd int, m []mmsghdr) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(m))),
		uintptr(len(m)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}
