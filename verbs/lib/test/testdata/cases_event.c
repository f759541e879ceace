/* cases_event.c - events, the end of urdmad, fork, and texts for numbers. */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "setup.h"

static struct ibv_cq *get_event(struct setup *s)
{
	struct ibv_cq *cq;
	void *context;

	CHECK_RETURNS(ibv_get_cq_event(s->channel, &cq, &context), 0);
	CHECK(cq == s->cq && context == s);
	return cq;
}

static void *acknowledge_later(void *arg)
{
	struct setup *s = arg;

	usleep(50000);
	s->memory[0] = 42;
	ibv_ack_cq_events(s->cq, 1);
	return NULL;
}

static void check_nonblocking(struct setup *s)
{
	struct ibv_cq *cq;
	void *context;

	CHECK(fcntl(s->channel->fd, F_SETFL, O_NONBLOCK) == 0);
	CHECK_RETURNS(ibv_get_cq_event(s->channel, &cq, &context), -1);
	CHECK(errno == EAGAIN);
	CHECK(fcntl(s->channel->fd, F_SETFL, 0) == 0);
}

void case_events(void)
{
	struct setup s;
	struct ibv_wc wc[3];
	pthread_t thread;

	set_up(&s, 8, 8);
	check_nonblocking(&s);
	/* Unarmed: no event. Armed for solicited only: a plain completion sends none. */
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, 1, 8), 0);
	poll_for(s.cq, 1, wc);
	CHECK_RETURNS(ibv_req_notify_cq(s.cq, 1), 0);
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, 2, 8), 0);
	poll_for(s.cq, 1, wc);
	check_nonblocking(&s);
	/* Armed for any: one event, after a late one that is dropped. Arming for solicited ones afterwards
	 * does not change that. */
	CHECK_RETURNS(ibv_req_notify_cq(s.cq, 0), 0);
	CHECK_RETURNS(ibv_req_notify_cq(s.cq, 1), 0);
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, WR_LATE_EVENT | 3, 8), 0);
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, 4, 8), 0);
	get_event(&s);
	poll_for(s.cq, 2, wc);
	check_nonblocking(&s);
	/* Destroying waits for the acknowledgement. */
	CHECK_RETURNS(ibv_destroy_qp(s.qp), 0);
	s.memory[0] = 0;
	CHECK(!pthread_create(&thread, NULL, acknowledge_later, &s));
	CHECK_RETURNS(ibv_destroy_cq(s.cq), 0);
	CHECK(s.memory[0] == 42);
	pthread_join(thread, NULL);
	CHECK_RETURNS(ibv_destroy_comp_channel(s.channel), 0);
}

void case_async(void)
{
	struct setup s;
	struct ibv_async_event event;

	set_up(&s, 8, 8);
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, WR_ASYNC, 8), 0);
	CHECK_RETURNS(ibv_get_async_event(s.context, &event), 0);
	CHECK(event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == s.qp);
	ibv_ack_async_event(&event);
	CHECK(fcntl(s.context->async_fd, F_SETFL, O_NONBLOCK) == 0);
	CHECK_RETURNS(ibv_get_async_event(s.context, &event), -1);
	CHECK(errno == EAGAIN);
	tear_down(&s);
}

static void check_flushed(const struct ibv_wc *wc, uint64_t wr_id, enum ibv_wc_opcode opcode, const struct setup *s)
{
	CHECK(wc->wr_id == wr_id && wc->status == IBV_WC_WR_FLUSH_ERR && wc->opcode == opcode);
	CHECK(wc->qp_num == s->qp->qp_num);
}

/* As when a device fails: all outstanding work is flushed, armed queues deliver their event, the context
 * reports it, posts are refused, and destroying works. */
void case_death(void)
{
	struct setup s;
	struct ibv_wc wc[8];
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	set_up(&s, 8, 8);
	CHECK_RETURNS(post_recv(&s, 20), 0);
	CHECK_RETURNS(post_recv(&s, 21), 0);
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, 10, 8), 0);
	poll_for(s.cq, 1, wc);
	CHECK_RETURNS(ibv_req_notify_cq(s.cq, 0), 0);
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_READ, WR_DIE, 8), 0);
	CHECK_RETURNS(ibv_get_async_event(s.context, &event), 0);
	CHECK(event.event_type == IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
	CHECK_RETURNS(ibv_get_async_event(s.context, &event), -1);
	CHECK(errno == EIO);
	CHECK_RETURNS(post_send(&s, IBV_WR_SEND, 11, 8), EIO);
	CHECK_RETURNS(post_recv(&s, 22), EIO);
	get_event(&s);
	ibv_ack_cq_events(s.cq, 1);
	CHECK_RETURNS(ibv_poll_cq(s.cq, 8, wc), 3);
	check_flushed(&wc[0], WR_DIE, IBV_WC_RDMA_READ, &s);
	check_flushed(&wc[1], 20, IBV_WC_RECV, &s);
	check_flushed(&wc[2], 21, IBV_WC_RECV, &s);
	CHECK_RETURNS(ibv_poll_cq(s.cq, 8, wc), 0);
	CHECK_RETURNS(ibv_get_cq_event(s.channel, &cq, &context), -1);
	CHECK(errno == EIO);
	CHECK_NULL(ibv_alloc_pd(s.context), EIO);
	tear_down(&s);
}

static void wait_for_end(struct setup *s)
{
	struct ibv_async_event event;

	CHECK_RETURNS(ibv_get_async_event(s->context, &event), 0);
	CHECK(event.event_type == IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&event);
}

/* urdmad's index says that send and receive are complete, but it died before the completions: they are
 * flushed. A completed one that was not polled is not. */
void case_death_between(void)
{
	struct setup s;
	struct ibv_wc wc[8];

	set_up(&s, 8, 8);
	CHECK_RETURNS(post_recv(&s, 20), 0);
	CHECK_RETURNS(post_recv(&s, 21), 0);
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, 10, 8), 0);
	poll_for(s.cq, 1, wc);
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, 11, 8), 0);
	CHECK_RETURNS(post_send(&s, IBV_WR_SEND, WR_DIE_LATE, 8), 0);
	wait_for_end(&s);
	CHECK_RETURNS(ibv_poll_cq(s.cq, 8, wc), 4);
	CHECK(wc[0].wr_id == 11 && wc[0].status == IBV_WC_SUCCESS);
	check_flushed(&wc[1], WR_DIE_LATE, IBV_WC_SEND, &s);
	check_flushed(&wc[2], 20, IBV_WC_RECV, &s);
	check_flushed(&wc[3], 21, IBV_WC_RECV, &s);
	CHECK_RETURNS(ibv_poll_cq(s.cq, 8, wc), 0);
	tear_down(&s);
}

/* Unsignaled sends that were completed have no completion; later work is flushed. */
void case_death_silent(void)
{
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_RDMA_WRITE }, last = { .wr_id = 30, .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct setup s;
	struct ibv_wc wc[8];

	set_up(&s, 4, 4);
	for (wr.wr_id = 0; wr.wr_id < 10; wr.wr_id++)
		while (ibv_post_send(s.qp, &wr, &bad) == ENOMEM)
			;
	CHECK_RETURNS(ibv_query_qp(s.qp, &attr, IBV_QP_STATE, &init), 0); /* all are complete then */
	wr.wr_id = WR_DIE_LATE;
	wr.next = &last;
	CHECK_RETURNS(ibv_post_send(s.qp, &wr, &bad), 0);
	wait_for_end(&s);
	CHECK_RETURNS(ibv_poll_cq(s.cq, 8, wc), 1);
	check_flushed(&wc[0], 30, IBV_WC_RDMA_WRITE, &s);
	CHECK_RETURNS(ibv_poll_cq(s.cq, 8, wc), 0);
	tear_down(&s);
}

/* A program that only polls notices the end, too, and can open a new session. */
void case_reborn(void)
{
	struct setup s, again;
	struct ibv_wc wc;

	set_up(&s, 8, 8);
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, WR_REBORN, 8), 0);
	poll_for(s.cq, 1, &wc);
	check_flushed(&wc, WR_REBORN, IBV_WC_RDMA_WRITE, &s);
	for (int i = 0; i < 6000 && !*ibv_get_device_list(NULL); i++)
		usleep(10000);
	set_up(&again, 4, 4);
	CHECK_RETURNS(post_send(&again, IBV_WR_RDMA_WRITE, 5, 8), 0);
	poll_for(again.cq, 1, &wc);
	CHECK(wc.wr_id == 5 && wc.status == IBV_WC_SUCCESS);
	tear_down(&again);
	tear_down(&s);
}

static void child(struct setup *s)
{
	struct setup own;
	struct ibv_wc wc;

	CHECK_RETURNS(post_send(s, IBV_WR_RDMA_WRITE, 1, 8), EIO);
	CHECK_RETURNS(ibv_poll_cq(s->cq, 1, &wc), -1);
	CHECK_NULL(ibv_alloc_pd(s->context), EIO);
	tear_down(s);
	set_up(&own, 4, 4);
	CHECK_RETURNS(post_send(&own, IBV_WR_RDMA_WRITE, 6, 8), 0);
	poll_for(own.cq, 1, &wc);
	CHECK(wc.wr_id == 6);
	tear_down(&own);
	exit(0);
}

void case_fork(void)
{
	struct setup s;
	struct ibv_wc wc;
	int status;
	pid_t pid;

	set_up(&s, 8, 8);
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, 7, 8), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		child(&s);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, 8, 8), 0);
	poll_for(s.cq, 1, &wc);
	CHECK(wc.wr_id == 7);
	poll_for(s.cq, 1, &wc);
	CHECK(wc.wr_id == 8);
	tear_down(&s);
}

static void compare(void *real, const char *name, int from, int to)
{
	const char *(*theirs)(int) = dlsym(real, name), *(*ours)(int) = dlsym(RTLD_DEFAULT, name);

	CHECK(theirs && ours && theirs != ours);
	for (int i = from; i < to; i++)
		if (strcmp(theirs(i), ours(i)) != 0) {
			fprintf(stderr, "%s(%d): %s, expected %s\n", name, i, ours(i), theirs(i));
			exit(1);
		}
}

static void compare_numbers(void *real, const char *name, int from, int to)
{
	int (*theirs)(int) = dlsym(real, name), (*ours)(int) = dlsym(RTLD_DEFAULT, name);

	CHECK(theirs && ours && theirs != ours);
	for (int i = from; i < to; i++)
		if (theirs(i) != ours(i)) {
			fprintf(stderr, "%s(%d): %d, expected %d\n", name, i, ours(i), theirs(i));
			exit(1);
		}
}

/* A provider library that reads memory after the device finds nothing of its own. */
void case_provider(void)
{
	struct ibv_context *context = open_first();
	void *mlx5 = dlopen("libmlx5.so.1", RTLD_NOW);
	bool (*is_supported)(struct ibv_device *);
	int (*query)(struct ibv_context *, void *);
	uint8_t attributes[4096] = { 0 };

	if (!mlx5) {
		printf("libmlx5.so.1 is not installed\n");
		return;
	}
	is_supported = dlsym(mlx5, "mlx5dv_is_supported");
	query = dlsym(mlx5, "mlx5dv_query_device");
	CHECK(is_supported && query);
	CHECK(!is_supported(context->device));
	CHECK(query(context, attributes) == EOPNOTSUPP);
}

/* The same texts as the installed libibverbs. */
void case_strings(void)
{
	void *real = dlmopen(LM_ID_BASE, "libibverbs.so.1", RTLD_NOW | RTLD_LOCAL); /* dlopen would return ours */

	CHECK(real);
	compare(real, "ibv_wc_status_str", -2, 40);
	compare(real, "ibv_event_type_str", -2, 40);
	compare(real, "ibv_node_type_str", -2, 20);
	compare(real, "ibv_port_state_str", -2, 20);
	compare_numbers(real, "ibv_rate_to_mult", -2, 40);
	compare_numbers(real, "ibv_rate_to_mbps", -2, 40);
	compare_numbers(real, "mult_to_ibv_rate", -2, 600);
	compare_numbers(real, "mbps_to_ibv_rate", -2, 1300000);
}
