package mpa

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxVec is the greatest number of parts for one system call: UIO_MAXIOV.
const maxVec = 1024

// vector has the arguments of a system call.
type vector struct {
	iov [maxVec]unix.Iovec
	msg unix.Msghdr
}

// set describes memory to the kernel: as many parts as it accepts in one call.
func (v *vector) set(parts [][]byte) {
	n := min(len(parts), maxVec)
	for i, b := range parts[:n] {
		v.iov[i].Base = unsafe.SliceData(b)
		v.iov[i].SetLen(len(b))
	}
	v.msg = unix.Msghdr{Iov: &v.iov[0]}
	v.msg.SetIovlen(n)
}

// All three are raw system calls: the worker's thread keeps its P, as in package udp. None blocks.

// readable fills events with those of an epoll instance's sockets, and returns their number.
func readable(epoll int, events []unix.EpollEvent) int {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0 // EINTR
	}
	return int(n)
}

// send passes parts to the kernel in order; it returns how many bytes the kernel took.
func (v *vector) send(fd int, parts [][]byte) (int, unix.Errno) {
	v.set(parts)
	n, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&v.msg)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	return int(n), errno
}

// receive lets the kernel fill parts in order; it returns the number of bytes, 0 at the end of the stream.
func (v *vector) receive(fd int, parts [][]byte) (int, unix.Errno) {
	v.set(parts)
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&v.msg)), unix.MSG_DONTWAIT)
	return int(n), errno
}
