package control_test

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sendNothing sends a message of no bytes with descriptors: unix.Sendmsg would
// add a byte.
func sendNothing(t testing.TB, socket int, fds ...int) {
	t.Helper()
	oob := unix.UnixRights(fds...)
	m := unix.Msghdr{Control: &oob[0]}
	m.SetControllen(len(oob))
	if _, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(socket), uintptr(unsafe.Pointer(&m)),
		unix.MSG_NOSIGNAL); errno != 0 {
		t.Fatal("sendmsg: ", errno)
	}
}
