package worker

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// currentCore is the core the calling thread runs on, -1 if the kernel won't
// say. It can't block, so the raw form is right.
func currentCore() int32 {
	var core uint32
	if _, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&core)), 0, 0); errno != 0 {
		return -1
	}
	return int32(core)
}
