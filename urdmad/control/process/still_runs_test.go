package process

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStillRunsThroughSignals: a signal that comes meanwhile, as the Go runtime sends them
// to preempt a thread, makes no process one that has ended.
func TestStillRunsThroughSignals(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var done atomic.Bool
	defer done.Store(true)
	thread := unix.Gettid()
	go func() {
		for !done.Load() {
			_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG)
		}
	}()
	for n := range 20_000 {
		if !StillRuns(fds[0]) {
			t.Fatalf("call %d: this process has ended", n)
		}
	}
}
