/* Clocks, cores and scheduling classes. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "policy.h"

/* linux/sched/types.h clashes with glibc's sched.h; see sched_setattr(2). */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static uint64_t read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t now_ns(void) { return read_clock(CLOCK_MONOTONIC); }
uint64_t thread_cpu_ns(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
void yield(void) { sched_yield(); }
int this_core(void) { return sched_getcpu(); }

void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

void nap(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	nanosleep(&t, NULL);
}

static int policy_of(enum class c)
{
	switch (c) {
	case CLASS_BATCH: return SCHED_BATCH;
	case CLASS_FIFO: return SCHED_FIFO;
	case CLASS_RR: return SCHED_RR;
	default: return SCHED_OTHER;
	}
}

/* Pins the caller (core < 0: no pinning) and sets its scheduling class. Returns -1, with a message, if the kernel
 * refuses. */
int place(const struct placement *p, int core)
{
	struct attr a = { .size = sizeof a, .policy = (uint32_t)policy_of(p->class) };
	cpu_set_t set;

	if (core >= 0) {
		CPU_ZERO(&set);
		CPU_SET(core, &set);
		if (sched_setaffinity(0, sizeof set, &set) != 0) {
			fprintf(stderr, "floor: pinning to core %d: %s\n", core, strerror(errno));
			return -1;
		}
	}
	prctl(PR_SET_TIMERSLACK, 1L);
	if (p->class == CLASS_FIFO || p->class == CLASS_RR)
		a.priority = 1;
	else
		a.nice = p->nice, a.runtime = p->slice_ns;
	if (syscall(SYS_sched_setattr, 0, &a, 0) != 0) {
		fprintf(stderr, "floor: sched_setattr: %s\n", strerror(errno));
		return -1;
	}
	return 0;
}

/* Asks EEVDF for a slice (0: the system's) without changing class and nice value. The kernel allows this without
 * privileges, see sched_setattr(2). */
void set_slice(uint64_t ns)
{
	struct attr a = { .size = sizeof a };

	if (syscall(SYS_sched_getattr, 0, &a, sizeof a, 0) != 0)
		return;
	a.runtime = ns;
	a.flags = 0;
	syscall(SYS_sched_setattr, 0, &a, 0);
}
