package worker

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNiceWithoutPrivilege: a worker runs without the nice value that the kernel refuses, and logs it.
func TestNiceWithoutPrivilege(t *testing.T) {
	var th thread
	result := make(chan error)
	go func() { // the thread ends with the goroutine
		runtime.LockOSThread()
		h, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
		if err := unix.Capset(&h, &none[0]); err != nil {
			result <- err
			return
		}
		own, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // the system call returns 20 minus the nice value, unlike libc
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
