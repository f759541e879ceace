package verbs

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMemoryThroughSignals: memory can be allocated while signals arrive, such as a profiler's. (In Debian
// 12's kernel any signal interrupts fallocate(2) of shared memory.)
func TestMemoryThroughSignals(t *testing.T) {
	var a arena
	if _, err := a.file(func(int) (uint32, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var done atomic.Bool
	defer done.Store(true)
	thread := unix.Gettid()
	go func() {
		for !done.Load() {
			_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG)
			time.Sleep(100 * time.Microsecond)
		}
	}()
	for n := range 20 {
		at, mem, err := a.take((n + 1) << 19)
		if err != nil {
			t.Fatal(err)
		}
		mem[len(mem)-1] = 1
		a.give(at, mem)
	}
}
