// clock.c - a clock for perftest and mckey in tests, which lab preloads but for make test-long. Each perftest program
// compares the processor's cycle counter with gettimeofday for 0.2 s, busy, for each
// size that it reports: more time than all else that it does. By this clock a
// microsecond is 64 cycles, so it takes a few milliseconds. What perftest then reports
// is in these microseconds. On processors other than x86 the clock is right.
// A second of sleep takes a hundredth: each ib_write_bw sleeps once it is connected, and mckey's
// sender for three seconds once it has joined.
#include <sys/time.h>
#include <unistd.h>

unsigned int sleep(unsigned int seconds)
{
	usleep(seconds * 10000);
	return 0;
}

#ifdef __x86_64__
#include <x86intrin.h>

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	const unsigned long long us = __rdtsc() >> 6;

	(void)zone;
	now->tv_sec = us / 1000000;
	now->tv_usec = us % 1000000;
	return 0;
}
#endif
