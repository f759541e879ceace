package ring

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of futex(2). The words are in memory shared between processes, so FUTEX_PRIVATE_FLAG is not set.
const (
	futexWait = 0
	futexWake = 1
)

// futex waits while *word is value, or wakes value waiters. Its result is ignored, because the caller looks
// at the queue again in any case.
func futex(word *uint32, op, value uint32, timeout *unix.Timespec) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), uintptr(op), uintptr(value),
		uintptr(unsafe.Pointer(timeout)), 0, 0)
}
