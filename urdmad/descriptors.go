package main

import "golang.org/x/sys/unix"

// manyDescriptors is the initial size of the kernel's descriptor table. The kernel doubles a full
// table, and a process with several threads waits some milliseconds each time.
const manyDescriptors = 16384

// makeRoomForDescriptors makes the kernel grow the table at once, as far as the limit allows. If
// that fails, the table grows later.
func makeRoomForDescriptors() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur == 0 {
		return
	}
	last := min(limit.Cur, manyDescriptors) - 1
	if fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, int(last)); err == nil {
		_ = unix.Close(fd)
	}
}
