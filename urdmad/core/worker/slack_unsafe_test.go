package worker

import (
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestTimerSlackRefused: a worker runs under a seccomp profile that refuses PR_SET_TIMERSLACK, and logs it.
func TestTimerSlackRefused(t *testing.T) {
	var th thread
	result := make(chan error)
	go func() { // the thread with the filter ends with the goroutine
		runtime.LockOSThread()
		if err := refusePrctl(unix.PR_SET_TIMERSLACK); err != nil {
			result <- err
			return
		}
		p := DefaultPolicy()
		result <- th.setUp(&p)
	}()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if !errors.Is(th.refused, unix.EPERM) {
		t.Errorf("refused: %v, expected EPERM", th.refused)
	}
}

// refusePrctl makes the kernel return EPERM for an option of prctl(2) on this thread (seccomp(2); offsets are those
// of struct seccomp_data).
func refusePrctl(option uint32) error {
	const load, equal, answer = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load, K: 0}, // nr
		{Code: equal, K: unix.SYS_PRCTL, Jf: 3},
		{Code: load, K: 16}, // args[0], on little-endian machines
		{Code: equal, K: option, Jf: 1},
		{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}
