package worker

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// currentCore returns the core on which the calling thread runs, -1 if the kernel doesn't say. The call
// can't block, so it is a raw system call.
func currentCore() int32 {
	var core uint32
	if _, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&core)), 0, 0); errno != 0 {
		return -1
	}
	return int32(core)
}
