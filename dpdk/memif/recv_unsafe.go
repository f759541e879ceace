package memif

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// receive is recvmsg(2) without waiting, of at most most bytes. Package unix would also ask for the sender's address,
// and allocate memory for it. cut says that there is ancillary data, for which there is no room.
func receive(fd int, b *[64]byte, most, flags int) (n int, cut bool, err error) {
	part := unix.Iovec{Base: &b[0], Len: uint64(min(most, len(b)))}
	m := unix.Msghdr{Iov: &part, Iovlen: 1}
	got, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&m)),
		uintptr(unix.MSG_DONTWAIT|flags))
	if errno != 0 {
		return 0, false, errno
	}
	return int(got), m.Flags&unix.MSG_CTRUNC != 0, nil
}
