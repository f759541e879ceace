#include <sys/prctl.h>

/* The Go runtime's monitor thread sleeps for 20 µs at a time as long as it finds
 * something to do, which it does beside a worker that polls, and takes the core from
 * whoever works each time. Threads inherit their timer slack, so with 1 ms the kernel
 * has the sleep end with some other timer, at most that much later (docs/profiling.md).
 * Workers set their own (urdmad/core/worker). Where a seccomp profile refuses it, the monitor
 * wakes more often. */
__attribute__((constructor)) static void set_timer_slack(void)
{
	(void)prctl(PR_SET_TIMERSLACK, 1000000UL, 0, 0, 0);
}
