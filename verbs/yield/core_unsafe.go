package yield

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// CurrentCore returns the CPU on which this goroutine runs at the moment (getcpu(2)).
func CurrentCore() uint32 {
	var core uint32
	_, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&core)), 0, 0)
	if errno != 0 {
		return ^uint32(0)
	}
	return core
}
