package worker

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNiceWithoutPrivilege: a worker runs without the nice value that the kernel
// refuses, and says so.
func TestNiceWithoutPrivilege(t *testing.T) {
	var th thread
	result := make(chan error)
	go func() { // its thread ends with it
		runtime.LockOSThread()
		h, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
		if err := unix.Capset(&h, &none[0]); err != nil {
			result <- err
			return
		}
		own, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 less the nice value: the system call's, not libc's
		if err != nil {
			result <- err
			return
		}
		p := DefaultPolicy()
		p.Nice = 20 - own - 1
		result <- th.setUp(&p)
	}()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if th.refused == nil {
		t.Error("nobody is told that the nice value was refused")
	}
}
