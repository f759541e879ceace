/* cancelled.c - threads that are cancelled while they wait: the socket stays usable, and no reference to
 * it is left. */
#include <poll.h>
#include <pthread.h>
#include <sys/select.h>
#include <unistd.h>

#include "streams.h"

static int a, b, listener, datagrams;
static pid_t waiter;

static void *in_receive(void *arg)
{
	char byte;

	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELEASE);
	rrecv(b, &byte, 1, 0);
	return arg;
}

static void *in_send(void *arg)
{
	static char many[1 << 20];

	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELEASE);
	while (rsend(b, many, sizeof(many), 0) > 0)
		;
	return arg;
}

static void *in_accept(void *arg)
{
	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELEASE);
	raccept(listener, NULL, NULL);
	return arg;
}

static void *in_poll(void *arg)
{
	struct pollfd p[20];

	for (int i = 0; i < 20; i++) /* more than fit on the stack */
		p[i] = (struct pollfd){ .fd = i % 2 ? a : listener, .events = POLLIN };
	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELEASE);
	rpoll(p, 20, -1);
	return arg;
}

static void *in_select(void *arg)
{
	fd_set reads;

	FD_ZERO(&reads);
	FD_SET(a, &reads);
	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELEASE);
	rselect(a + 1, &reads, NULL, NULL, NULL);
	return arg;
}

static void *in_receive_datagram(void *arg)
{
	char byte;

	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELEASE);
	rrecv(datagrams, &byte, 1, 0);
	return arg;
}

static bool sleeps(pid_t *thread)
{
	char path[64], text[256] = "", *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", __atomic_load_n(thread, __ATOMIC_ACQUIRE));
	f = fopen(path, "r");
	end = f && fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
	if (f)
		fclose(f);
	return end && end[2] == 'S';
}

void until_asleep(pid_t *thread)
{
	do
		usleep(1000);
	while (!sleeps(thread));
}

static void cancel(void *(*run)(void *))
{
	pthread_t thread;
	void *result;

	waiter = 0;
	CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
	until_asleep(&waiter);
	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

void case_cancelled(void)
{
	struct sockaddr_in any = place(0);
	char byte;
	int c;

	connected(&a, &b);
	listener = listener_of(1);
	CHECK((datagrams = rsocket(AF_INET, SOCK_DGRAM, 0)) >= 0);
	CHECK(rbind(datagrams, (struct sockaddr *)&any, sizeof(any)) == 0);
	cancel(in_receive);
	CHECK(rsend(a, "x", 1, 0) == 1 && rrecv(b, &byte, 1, 0) == 1);
	cancel(in_accept);
	cancel(in_poll);
	cancel(in_select);
	cancel(in_receive_datagram);
	cancel(in_send);
	CHECK(rrecv(a, &byte, 1, 0) == 1);
	CHECK((c = rsocket(AF_INET, SOCK_STREAM, 0)) >= 0);
	CHECK(rconnect(c, (struct sockaddr *)&at, sizeof(at)) == 0);
	CHECK(rclose(c) == 0 && rclose(a) == 0 && rclose(b) == 0 && rclose(listener) == 0 && rclose(datagrams) == 0);
}
