/* waiting.c - threads that wait for events while objects are destroyed. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "cases.h"

void test_nonblocking(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct pollfd poller = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_id *gone = resolved(channel), *id = resolved(channel);
	struct rdma_cm_event *event;

	CHECK(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) == 0);
	REFUSES(rdma_get_cm_event(channel, &event), EAGAIN);
	CHECK(poll(&poller, 1, 0) == 0);
	send_event(gone, RDMA_CM_EVENT_ROUTE_ERROR, -EIO);
	CHECK(poll(&poller, 1, 0) == 1);
	finish(gone);
	CHECK(poll(&poller, 1, 0) == 0); /* the destroyed id's event was removed, too */
	REFUSES(rdma_get_cm_event(channel, &event), EAGAIN);
	gone = resolved(channel);
	send_event(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	send_event(gone, RDMA_CM_EVENT_ROUTE_ERROR, -EIO);
	finish(gone); /* its event is queued after another id's */
	expect(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	CHECK(poll(&poller, 1, 0) == 0);
	finish(id);
	rdma_destroy_event_channel(channel);
}

/* Requests that nobody took are destroyed with the listener. */
void test_unread_request(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening(channel, "0.0.0.0");
	uint32_t a = request_arrives(listener), b = request_arrives(listener), c;

	finish(listener);
	CHECK(!fake_ids[a].channel && !fake_ids[b].channel);

	listener = listening(channel, "0.0.0.0");
	c = request_arrives(listener);
	rdma_destroy_event_channel(channel); /* in the wrong order, as some programs do */
	CHECK(!fake_ids[c].channel);
}

static struct rdma_cm_event *held;

static void *acknowledge_later(void *argument)
{
	(void)argument;
	usleep(100000);
	rdma_ack_cm_event(held);
	return NULL;
}

void test_destroy_waits(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved(channel);
	struct timespec before, after;
	pthread_t thread;

	send_event(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	CHECK(rdma_get_cm_event(channel, &held) == 0);
	clock_gettime(CLOCK_MONOTONIC, &before);
	CHECK(pthread_create(&thread, NULL, acknowledge_later, NULL) == 0);
	finish(id);
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHECK((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >= 90);
	pthread_join(thread, NULL);
	rdma_destroy_event_channel(channel);
}

static pid_t waiter;

static void *wait_for_event(void *channel)
{
	struct rdma_cm_event *event;

	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELEASE);
	rdma_get_cm_event(channel, &event);
	return NULL;
}

/* Starts a thread that waits for an event, and returns when it sleeps. */
static pthread_t start_waiter(struct rdma_event_channel *channel)
{
	char path[64], text[256], *state;
	pthread_t thread;
	FILE *f;

	waiter = 0;
	CHECK(pthread_create(&thread, NULL, wait_for_event, channel) == 0);
	do {
		usleep(1000);
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", __atomic_load_n(&waiter, __ATOMIC_ACQUIRE));
		f = fopen(path, "r");
		state = f && fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
		if (f)
			fclose(f);
	} while (!state || state[2] != 'S');
	return thread;
}

void test_cancel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved(channel);
	pthread_t thread = start_waiter(channel);
	void *result;

	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
	CHECK(result == PTHREAD_CANCELED);
	send_event(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	expect(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	finish(id);
	rdma_destroy_event_channel(channel);
}

/* rping destroys its channel while a thread sleeps in it, and then returns. */
void test_destroy_under_reader(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct timespec soon;
	pthread_t thread = start_waiter(channel);
	void *result;

	rdma_destroy_event_channel(channel);
	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_sec++;
	CHECK(pthread_timedjoin_np(thread, &result, &soon) == ETIMEDOUT); /* still asleep */
	CHECK(fake_count(URDMA_ABI_CM_DESTROY_CHANNEL) == 0);
	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
	CHECK(fake_count(URDMA_ABI_CM_DESTROY_CHANNEL) == 1); /* destroyed with the last reader */
}

/* A thread may also be about to call rdma_get_cm_event again. */
void test_destroy_before_reader(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	pthread_t thread;
	void *result;

	rdma_destroy_event_channel(channel);
	thread = start_waiter(channel); /* asleep, not ended with an error */
	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
	CHECK(result == PTHREAD_CANCELED);
	CHECK(fake_count(URDMA_ABI_CM_DESTROY_CHANNEL) == 1);
}

void test_daemon_dies(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = connected(channel), *idle = resolved(channel);
	struct rdma_cm_id *listener = listening(channel, "0.0.0.0");
	struct rdma_cm_id *sync = connected(NULL);
	struct rdma_cm_event *event;
	int removals = 0, ended = 0;

	fake_die();
	for (int i = 0; i < 3; i++) {
		CHECK(rdma_get_cm_event(channel, &event) == 0);
		CHECK(event->id == id || event->id == idle);
		CHECK(event->id != id || event->event != RDMA_CM_EVENT_DEVICE_REMOVAL || ended == 0);
		ended += event->event == RDMA_CM_EVENT_DISCONNECTED;
		removals += event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
		CHECK(rdma_ack_cm_event(event) == 0);
	}
	CHECK(ended == 1 && removals == 2);
	REFUSES(rdma_get_cm_event(channel, &event), ENODEV);
	REFUSES(rdma_disconnect(sync), EIO);
	finish(sync);
	finish(id);
	finish(idle);
	finish(listener);
	rdma_destroy_event_channel(channel);
}

#define MAKERS 4
#define ROUNDS 200

/* Creates ids on the shared channel and destroys them while their events are unread, read or acknowledged,
 * depending on the reader. */
static void *make_and_destroy(void *channel)
{
	struct sockaddr_in to = address("10.0.0.2", 7471);
	struct rdma_cm_id *id;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
		CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1) == 0);
		if (i % 2)
			sched_yield();
		CHECK(rdma_destroy_id(id) == 0);
	}
	return NULL;
}

static void *read_until_gone(void *channel)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(channel, &event) == 0) {
		CHECK(event->event == RDMA_CM_EVENT_ADDR_RESOLVED && event->id->channel == channel);
		CHECK(rdma_ack_cm_event(event) == 0);
	}
	CHECK(errno == ENODEV);
	return NULL;
}

void test_threads(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	pthread_t readers[2], makers[MAKERS];

	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&readers[i], NULL, read_until_gone, channel) == 0);
	for (int i = 0; i < MAKERS; i++)
		CHECK(pthread_create(&makers[i], NULL, make_and_destroy, channel) == 0);
	for (int i = 0; i < MAKERS; i++)
		CHECK(pthread_join(makers[i], NULL) == 0);
	fake_die();
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(readers[i], NULL) == 0);
	CHECK(fake_count(URDMA_ABI_CM_CREATE_ID) == fake_count(URDMA_ABI_CM_DESTROY_ID));
	rdma_destroy_event_channel(channel);
}
