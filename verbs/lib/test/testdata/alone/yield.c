/* yield.c - tests at which empty polls and posts a thread yields its core to urdmad. The clock, the CPU,
 * sched_yield(2) and futex(2) are replaced: a yield takes as long as a case sets. */
#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../../datapath/objects.h"

#define OTHERS_RAN 1300u /* ns: duration of a yield in which another thread ran */
#define NOBODY 400u      /* ns: duration of a yield in which no other thread ran */

static uint64_t now = 1000000, yield_takes;
static unsigned int yields, waits, probes;
static int cpu = 3, wait_error;
static long waited_most; /* ns: duration of the last wait */

int clock_gettime(clockid_t clock, struct timespec *t)
{
	(void)clock;
	*t = (struct timespec){ .tv_sec = (time_t)(now / 1000000000u), .tv_nsec = (long)(now % 1000000000u) };
	return 0;
}

int sched_yield(void)
{
	yields++;
	now += yield_takes;
	return 0;
}

int sched_getcpu(void)
{
	return cpu;
}

static struct urdma_abi_doorbells bells;
static struct urdma_abi_cq_ring ring;
static struct urdma_cq queues[20];

long syscall(long number, ...)
{
	const uint32_t *word;
	va_list list;

	va_start(list, number);
	word = va_arg(list, const uint32_t *);
	if (word == &queues[0].lock.word) { /* the resizing thread has finished */
		queues[0].ring = &ring;
		queues[0].lock.word = 0;
		va_end(list);
		return 0;
	}
	assert(number == SYS_futex && word == &bells.waits && va_arg(list, int) == FUTEX_WAIT && *word == 1);
	assert(va_arg(list, int) == 1);
	waited_most = va_arg(list, const struct timespec *)->tv_nsec;
	va_end(list);
	waits++;
	errno = wait_error;
	return wait_error ? -1 : 0;
}

bool urdma_client_probe(struct urdma_client *client)
{
	(void)client;
	probes++;
	errno = EPIPE;
	return true;
}

bool urdma_client_has(struct urdma_client *client, const struct urdma_kept *kept)
{
	(void)client;
	return kept->fd >= 0;
}

static void begin(uint32_t every, uint64_t takes)
{
	bells = (struct urdma_abi_doorbells){ .yield_poll = every, .core = (uint32_t)cpu + 1 };
	ring.prod = ring.cons = 7;
	for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
		queues[i].bells = &bells;
		queues[i].ring = &ring;
	}
	now += 1000000; /* ends any rest */
	yield_takes = takes;
	urdma_yield_found();
}

/* Returns the number of yields in so many rounds over the first n queues. */
static unsigned int rounds(unsigned int n, unsigned int count)
{
	unsigned int before = yields;

	for (unsigned int i = 0; i < count * n; i++) {
		unsigned int had = yields;

		now += 50;
		assert(urdma_yield_empty_poll(&queues[i % n]) == (yields > had));
	}
	return yields - before;
}

/* A thread yields once for each round over its queues, after the first; a poll that found something starts
 * again. */
static void once_a_round(void)
{
	for (unsigned int n = 1; n <= 8; n++) {
		begin(1, OTHERS_RAN);
		assert(rounds(n, 1) == 0);
		assert(rounds(n, 10) == 10);
		urdma_yield_found();
		assert(rounds(n, 1) == 0);
	}
}

/* It yields as seldom as urdmad states. */
static void as_told(void)
{
	begin(0, OTHERS_RAN);
	assert(rounds(2, 100) == 0);
	begin(3, OTHERS_RAN);
	assert(rounds(1, 1 + 30) == 10);
}

/* A queue that is no longer polled does not prevent yields; nor do very many queues. */
static void queue_left(void)
{
	begin(1, OTHERS_RAN);
	rounds(1, 5);
	for (int i = 0; i < 15; i++)
		assert(!urdma_yield_empty_poll(&queues[1]));
	for (int i = 0; i < 5; i++)
		assert(urdma_yield_empty_poll(&queues[1]));
	begin(1, OTHERS_RAN);
	assert(rounds(20, 16) == 20 - 1);
}

/* After a yield in which no other thread ran it rests, whichever queue is polled. */
static void nobody_there(void)
{
	begin(1, NOBODY);
	rounds(2, 1);
	assert(rounds(2, 1) == 1);
	assert(rounds(2, 10) == 0); /* 1 µs */
	now += 2000;
	assert(rounds(2, 1) == 1);
}

/* If no other thread ran although urdmad, awake, needs this CPU, the thread waits for urdmad; but not for
 * a worker that sleeps or has another CPU, and not if there are completions. */
static void other_group(void)
{
	begin(1, NOBODY);
	bells.core = (uint32_t)cpu;
	waits = 0;
	rounds(2, 1);
	assert(rounds(2, 10) == 10 && waits == 10 && !bells.waits);
	assert(bells.poller == (uint32_t)cpu + 1);
	ring.prod++;
	assert(rounds(2, 10) == 10 && waits == 10 && !bells.waits);
	ring.prod--;
	bells.sleeping = 1;
	assert(rounds(2, 10) == 1 && waits == 10);
	bells.sleeping = 0;
	cpu++;
	now += 2000;
	assert(rounds(2, 10) == 1 && waits == 10);
	assert(bells.poller == (uint32_t)cpu + 1);
	urdma_yield_stop(&(struct urdma_client){ .bells = &bells, .workers = 1, .state = &(uint32_t){ URDMA_CLIENT_FORKED } });
	assert(bells.poller); /* in a child the doorbells are its parent's */
	urdma_yield_stop(&(struct urdma_client){ .bells = &bells, .workers = 1, .state = &(uint32_t){ URDMA_CLIENT_LIVE } });
	assert(!bells.poller);
	cpu--;
}

/* urdmad states the shortest yield in which another thread runs, and the other times are multiples of it. */
static void slow_machine(void)
{
	begin(1, 4000);
	bells.yield_alone = 6000;
	rounds(1, 1);
	assert(rounds(1, 1) == 1);
	assert(rounds(1, 100) == 0); /* 5 µs */
	now += 7000;
	assert(rounds(1, 1) == 1);

	bells.core = (uint32_t)cpu;
	now += 12000;
	waits = 0;
	rounds(1, 1);
	assert(waits == 1 && waited_most == 200 * 6000);
	yield_takes = 6000;
	assert(rounds(1, 10) == 10 && waits == 1);

	bells.yield_alone = UINT32_MAX; /* the value is limited: no thread sleeps for seconds */
	assert(rounds(1, 10) == 10 && waits == 11 && waited_most == 200 * 30000);
	bells.yield_alone = 0; /* urdmad states no value */
	yield_takes = 900;
	assert(rounds(1, 1) == 1 && waited_most == 200 * 1000);
}

/* A waiting thread reads no ring that another thread is replacing (ibv_resize_cq). */
static void resized_meanwhile(void)
{
	begin(1, NOBODY);
	bells.core = (uint32_t)cpu;
	__libc_single_threaded = 0;
	queues[0].lock.word = 1;
	queues[0].ring = NULL;
	waits = 0;
	rounds(1, 2);
	assert(waits == 1 && queues[0].ring == &ring && !queues[0].lock.word);
}

/* After a wait that timed out it checks that urdmad runs. */
static void nobody_wakes(void)
{
	begin(1, NOBODY);
	bells.core = (uint32_t)cpu;
	waits = probes = 0;
	rounds(1, 1 + 10);
	assert(waits == 10 && !probes);
	wait_error = ETIMEDOUT;
	errno = EBADMSG;
	rounds(1, 10);
	assert(waits == 20 && probes == 10 && errno == EBADMSG);
	wait_error = 0;
}

/* With long yields on a busy machine, the end of urdmad is not detected by the number of polls. */
static void long_yields(void)
{
	begin(1, 4000000);
	probes = 0;
	errno = EBADMSG;
	assert(rounds(1, 1 + 30) == 30);
	assert(probes == 10 && errno == EBADMSG);
	begin(1, OTHERS_RAN);
	probes = 0;
	rounds(1, 1 + 10000);
	assert(probes == 1);
}

/* Before each wait every queue is polled, however many there are: an existing completion would not end the
 * wait. */
static void many_queues(void)
{
	static struct urdma_cq many[1000];

	begin(1, NOBODY);
	bells.core = (uint32_t)cpu;
	for (size_t i = 0; i < 1000; i++) {
		many[i].bells = &bells;
		many[i].ring = &ring;
	}
	waits = 0;
	for (unsigned int i = 0, last = 0, had = 0; i < 20000; i++, had = waits) {
		now += 50;
		urdma_yield_empty_poll(&many[i % 1000]);
		if (waits == had)
			continue;
		assert(i - last >= 1000);
		last = i;
	}
	assert(waits > 10);
	urdma_yield_found();
	waits = 0;
	for (unsigned int i = 0; i < 1000; i++)
		urdma_yield_empty_poll(&many[i]);
	assert(!waits);
	for (unsigned int i = 0; i < 10000; i++, now += 50)
		urdma_yield_empty_poll(&many[1]);
	assert(waits > 1000);
}

/* Returns the number of yields in so many posts, each 100 ns after the one before. */
static unsigned int posts(struct urdma_qp *qp, unsigned int count)
{
	unsigned int before = yields;

	for (unsigned int i = 0; i < count; i++, now += 100)
		urdma_announce_send(qp);
	return yields - before;
}

/* A burst of posts yields once, however long urdmad runs in that yield; a post yields again after a poll, and
 * after a time without one. */
static void bursts(void)
{
	static struct urdma_qp qp = { .bells = &bells, .ex.qp_base = { .send_cq = (struct ibv_cq *)&queues[0] } };

	begin(1, 20000);
	bells.yield_post = 1;
	assert(posts(&qp, 3) == 0);
	bells.core = (uint32_t)cpu;
	queues[0].polled = true;
	assert(posts(&qp, 30) == 1);
	assert(posts(&qp, 30) == 1);
	now += 5000;
	assert(posts(&qp, 1) == 1);
	queues[0].polled = true;
	assert(posts(&qp, 2) == 1);
}

static void *another(void *unused)
{
	assert(rounds(1, 1) == 0);
	assert(rounds(1, 5) == 5);
	return unused;
}

/* Completions found by one thread do not affect another. */
static void by_thread(void)
{
	pthread_t thread;

	begin(1, OTHERS_RAN);
	rounds(1, 1);
	assert(!pthread_create(&thread, NULL, another, NULL) && !pthread_join(thread, NULL));
	assert(rounds(1, 1) == 1);
}

int main(void)
{
	once_a_round();
	as_told();
	queue_left();
	nobody_there();
	other_group();
	slow_machine();
	resized_meanwhile();
	nobody_wakes();
	long_yields();
	many_queues();
	bursts();
	by_thread();
	puts("yield: done");
	return 0;
}
