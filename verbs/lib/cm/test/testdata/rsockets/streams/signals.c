/* signals.c - calls in signal handlers, where poll(2), send(2) and recv(2) are allowed. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "streams.h"

#define TIMES 1000

static atomic_int handled;
static atomic_bool ready;
static int mine, other;
static int times = TIMES;
static pthread_t interrupted;

/* Each signal interrupts the waiting thread at another place. The thread is told when all were handled. */
static void *interrupt(void *unused)
{
	while (!ready)
		sched_yield();
	for (int i = 0; i < times; i++) {
		CHECK(pthread_kill(interrupted, SIGUSR1) == 0);
		while (handled == i)
			sched_yield();
		for (volatile int j = rand() % 20000; j > 0; j--)
			;
	}
	CHECK(rsend(other, "e", 1, 0) == 1);
	return unused;
}

static void begin(void (*handler)(int), pthread_t *thread)
{
	connected(&mine, &other);
	interrupted = pthread_self();
	CHECK(signal(SIGUSR1, handler) != SIG_ERR);
	CHECK(pthread_create(thread, NULL, interrupt, NULL) == 0);
}

static void wait_until_told(void)
{
	struct pollfd p = { .fd = mine, .events = POLLIN };
	char byte;

	ready = true;
	for (int i = 0;; i++) {
		if (i % 3 == 0)
			CHECK(rpoll(&p, 1, i % 2) >= 0 || errno == EINTR);
		else if (rrecv(mine, &byte, 1, i % 3 == 1 ? 0 : MSG_DONTWAIT) == 1)
			return;
		else
			CHECK(errno == EINTR || errno == EAGAIN);
	}
}

static void end(pthread_t thread)
{
	CHECK(pthread_join(thread, NULL) == 0 && handled == times);
	CHECK(rclose(mine) == 0 && rclose(other) == 0);
}

static void send_one(int number)
{
	int before = errno;

	(void)number;
	CHECK(rsend(mine, "h", 1, 0) == 1);
	handled++;
	errno = before;
}

static void *receive_all(void *unused)
{
	char bytes[TIMES];

	CHECK(rrecv(other, bytes, sizeof(bytes), MSG_WAITALL) == sizeof(bytes));
	return unused;
}

/* A handler sends on the socket on which its thread is receiving. */
void case_handler_sends(void)
{
	pthread_t thread, receiver;

	begin(send_one, &thread);
	CHECK(pthread_create(&receiver, NULL, receive_all, NULL) == 0);
	wait_until_told();
	CHECK(pthread_join(receiver, NULL) == 0);
	end(thread);
}

static sigjmp_buf beginning;

static void leave(int number)
{
	(void)number;
	siglongjmp(beginning, 1);
}

/* A handler leaves the call that it interrupted by longjmp, as iperf3's does. The socket still works. */
void case_handler_leaves(void)
{
	static pthread_t thread, receiver;

	if (sigsetjmp(beginning, 1)) {
		CHECK(rsend(mine, "j", 1, 0) == 1);
		handled++;
	} else {
		begin(leave, &thread);
		CHECK(pthread_create(&receiver, NULL, receive_all, NULL) == 0);
	}
	wait_until_told();
	CHECK(pthread_join(receiver, NULL) == 0);
	end(thread);
}

static void wait_too(int number)
{
	struct pollfd p = { .fd = mine, .events = POLLIN };
	int before = errno;
	char byte;

	(void)number;
	CHECK(rsend(other, "w", 1, 0) == 1 && rpoll(&p, 1, -1) == 1 && rrecv(mine, &byte, 1, 0) == 1 && byte == 'w');
	handled++;
	errno = before;
}

/* A handler waits for the same socket as its thread. */
void case_handler_waits(void)
{
	pthread_t thread;

	times = TIMES / 10; /* slower: each takes a turn of urdmad */
	begin(wait_too, &thread);
	wait_until_told();
	end(thread);
}
