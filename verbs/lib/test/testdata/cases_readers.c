/* cases_readers.c - objects are destroyed while threads wait on them: as with the kernel's files the
 * threads keep waiting, until they are cancelled or the program ends. */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "setup.h"

/* The sanitizers' runtimes report the unwinding of a stack as an error. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CANCEL false
#else
#define CANCEL true
#endif

static bool woke;
static pid_t waiter;

static void *wait_for_completions(void *arg)
{
	struct ibv_comp_channel *channel = arg;
	struct ibv_cq *cq;
	void *context;

	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELEASE);
	ibv_get_cq_event(channel, &cq, &context);
	__atomic_store_n(&woke, true, __ATOMIC_RELAXED);
	return NULL;
}

static void *wait_for_async(void *arg)
{
	struct ibv_async_event event;

	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELEASE);
	ibv_get_async_event(arg, &event);
	__atomic_store_n(&woke, true, __ATOMIC_RELAXED);
	return NULL;
}

/* Waits until the thread started last sleeps. */
static void await_sleep(void)
{
	char path[64], text[256], *state;
	FILE *f;

	do {
		usleep(1000);
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", __atomic_load_n(&waiter, __ATOMIC_ACQUIRE));
		f = fopen(path, "r");
		state = f && fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
		if (f)
			fclose(f);
	} while (!state || state[2] != 'S');
}

static void start(pthread_t threads[2], void *(*run)(void *), void *arg)
{
	for (int i = 0; i < 2; i++) {
		__atomic_store_n(&waiter, 0, __ATOMIC_RELEASE);
		CHECK(!pthread_create(&threads[i], NULL, run, arg));
		await_sleep();
	}
}

static void still_asleep(pthread_t threads[2])
{
	void *result;

	usleep(300000); /* urdmad has closed the socket; its end is waited for up to 0.2 s */
	CHECK(!__atomic_load_n(&woke, __ATOMIC_RELAXED));
	if (!CANCEL)
		return;
	for (int i = 0; i < 2; i++) {
		CHECK(!pthread_cancel(threads[i]));
		CHECK(!pthread_join(threads[i], &result) && result == PTHREAD_CANCELED);
	}
}

void case_channel_destroyed(void)
{
	struct ibv_context *context = open_first();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	pthread_t threads[2];

	CHECK(channel);
	start(threads, wait_for_completions, channel);
	CHECK_RETURNS(ibv_destroy_comp_channel(channel), 0);
	CHECK_RETURNS(ibv_close_device(context), 0);
	still_asleep(threads);
}

/* A channel with readers and queues is busy, and continues to work. */
void case_channel_busy(void)
{
	struct setup s;
	pthread_t threads[2];
	struct ibv_wc wc;

	set_up(&s, 4, 4);
	start(threads, wait_for_completions, s.channel);
	CHECK_RETURNS(ibv_destroy_comp_channel(s.channel), EBUSY);
	for (int i = 0; i < 2; i++) {
		CHECK_RETURNS(ibv_req_notify_cq(s.cq, 0), 0);
		CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, 1, 8), 0);
		poll_for(s.cq, 1, &wc);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	ibv_ack_cq_events(s.cq, 2);
	tear_down(&s);
}

void case_context_closed(void)
{
	struct ibv_context *context = open_first();
	pthread_t threads[2];

	start(threads, wait_for_async, context);
	CHECK_RETURNS(ibv_close_device(context), 0);
	still_asleep(threads);
}

/* A cancelled reader does not keep the channel in use. */
void case_reader_cancelled(void)
{
	struct ibv_context *context = open_first();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	pthread_t threads[2], more[2];
	int fd = channel->fd, async = context->async_fd;

	start(threads, wait_for_completions, channel);
	start(more, wait_for_async, context);
	still_asleep(threads);
	still_asleep(more);
	CHECK_RETURNS(ibv_destroy_comp_channel(channel), 0);
	CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
	CHECK_RETURNS(ibv_close_device(context), 0);
	CHECK(fcntl(async, F_GETFD) == -1 && errno == EBADF);
}
