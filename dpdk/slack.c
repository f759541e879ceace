#include <sys/prctl.h>

/* The Go runtime's monitor thread sleeps only 20 µs at a time while it finds work, which is always so
 * while a worker polls, and interrupts the thread that runs on its core each time. Threads inherit their
 * timer slack: with 1 ms the kernel lets the sleep end together with another timer, at most that much
 * later (docs/design/measurements.md). Workers set their own slack (urdmad/core/worker). If a seccomp profile
 * refuses the call, the monitor wakes more often. */
__attribute__((constructor)) static void set_timer_slack(void)
{
	(void)prctl(PR_SET_TIMERSLACK, 1000000UL, 0, 0, 0);
}
