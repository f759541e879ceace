package main

import "golang.org/x/sys/unix"

// manyDescriptors is how many the kernel's table of them has room for from the start.
// It doubles a full table, and a process of several threads waits for some ms each time.
const manyDescriptors = 16384

// makeRoomForDescriptors has the kernel grow the table at once, as far as it may. What
// fails is done later, when the table is full.
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
