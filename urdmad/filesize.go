package main

import (
	"log/slog"

	"golang.org/x/sys/unix"
)

// allowLargeFiles raises RLIMIT_FSIZE, which also limits memfds: the queues and captures of
// clients.
func allowLargeFiles(log *slog.Logger) {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return
	}
	limit.Cur = limit.Max
	_ = unix.Setrlimit(unix.RLIMIT_FSIZE, &limit) // a soft limit may always be raised to the hard one
	if limit.Max != unix.RLIM_INFINITY {
		log.Warn("RLIMIT_FSIZE (ulimit -f, LimitFSIZE=) bounds files, and clients' larger queues and captures will fail",
			"bytes", limit.Max, "expected", "unlimited")
	}
}
