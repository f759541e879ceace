/* resize.c - queues that are armed and polled while another thread resizes them. */
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>

#include "slots.h"

#define ROUNDS 10000

static struct ibv_cq *busy, *idle;
static bool stop;

static bool running(void)
{
	return !__atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void *resize_both(void *arg)
{
	for (int i = 0; running(); i++) {
		CHECK_RETURNS(ibv_resize_cq(busy, DEPTH << i % 3), 0);
		CHECK_RETURNS(ibv_resize_cq(idle, DEPTH << i % 3), 0);
	}
	return arg;
}

static void *poll_the_idle(void *arg)
{
	struct ibv_wc wc;

	while (running()) {
		CHECK_RETURNS(ibv_req_notify_cq(idle, 0), 0);
		CHECK_RETURNS(ibv_poll_cq(idle, 1, &wc), 0);
	}
	return arg;
}

/* Arms, then posts: an event must come, and then the completion be there. */
static void one_round(struct ibv_comp_channel *channel, struct end *from, uint64_t n)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *unused;

	CHECK_RETURNS(ibv_req_notify_cq(busy, 0), 0);
	CHECK_RETURNS(post_write(from, n, IBV_SEND_SIGNALED), 0);
	if (poll(&p, 1, 60000) != 1) {
		fprintf(stderr, "no event in round %lu\n", n);
		exit(1);
	}
	CHECK_RETURNS(ibv_get_cq_event(channel, &cq, &unused), 0);
	ibv_ack_cq_events(cq, 1);
	CHECK(ibv_poll_cq(busy, 1, &wc) == 1 && wc.wr_id == n);
}

void case_resize_race(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
	pthread_t resizer, poller;
	struct end a, b;

	CHECK(channel && (busy = ibv_create_cq(context, DEPTH, NULL, channel, 0)));
	idle = make_cq(DEPTH);
	join(&a, make_pair(busy, make_cq(DEPTH)), &b, make_pair(make_cq(DEPTH), make_cq(DEPTH)));
	CHECK(!pthread_create(&resizer, NULL, resize_both, NULL));
	CHECK(!pthread_create(&poller, NULL, poll_the_idle, NULL));
	for (uint64_t n = 0; n < ROUNDS; n++)
		one_round(channel, &a, n);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(resizer, NULL);
	pthread_join(poller, NULL);
}
