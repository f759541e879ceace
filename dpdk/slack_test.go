package dpdk

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestTimerSlack: the runtime's threads have the timer slack that its monitor thread had at the start.
func TestTimerSlack(t *testing.T) {
	ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		t.Skipf("SKIPPED: prctl(PR_GET_TIMERSLACK): %v", err) // a seccomp profile
	}
	if ns != 1_000_000 {
		t.Errorf("%d ns of timer slack, expected 1 ms", ns)
	}
}
