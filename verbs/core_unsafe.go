package verbs

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// currentCore is the CPU we run on, as sched_getcpu(3) counts.
func currentCore() (core uint32) {
	_, _, _ = unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&core)), 0, 0)
	return core
}
