/*
 * inherited.c - a child's calls on its copies of the parent's objects change nothing for the parent:
 * waiting events and completions are the parent's. A child of _Fork has run no fork handlers.
 */
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "slots.h"

/* The parent's objects: a connection request waits on cm, a completion and its event on comp. */
static struct rdma_event_channel *cm;
static struct rdma_cm_id *listener, *client;
static struct rdma_cm_event *held; /* the client's event, not acknowledged */
static struct ibv_comp_channel *comp;
static struct ibv_cq *cq, *polled;
static struct end from, to;

static void await_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	CHECK(poll(&p, 1, 60000) == 1);
}

static struct rdma_cm_event *next(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	CHECK(rdma_get_cm_event(channel, &event) == 0 && event->event == type);
	return event;
}

static void ask_to_connect(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc6120001) };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct rdma_conn_param param = { .retry_count = 7 };
	struct rdma_event_channel *own = rdma_create_event_channel();

	cm = rdma_create_event_channel();
	CHECK(cm && own);
	CHECK_RETURNS(rdma_create_id(cm, &listener, NULL, RDMA_PS_TCP), 0);
	CHECK_RETURNS(rdma_bind_addr(listener, (struct sockaddr *)&at), 0);
	CHECK_RETURNS(rdma_listen(listener, 5), 0);
	at.sin_port = rdma_get_src_port(listener);
	CHECK_RETURNS(rdma_create_id(own, &client, NULL, RDMA_PS_TCP), 0);
	CHECK_RETURNS(rdma_resolve_addr(client, NULL, (struct sockaddr *)&at, 2000), 0);
	rdma_ack_cm_event(next(own, RDMA_CM_EVENT_ADDR_RESOLVED));
	CHECK_RETURNS(rdma_resolve_route(client, 2000), 0);
	held = next(own, RDMA_CM_EVENT_ROUTE_RESOLVED);
	CHECK_RETURNS(rdma_create_qp(client, NULL, &attr), 0);
	CHECK_RETURNS(rdma_connect(client, &param), 0);
	await_readable(cm->fd);
}

static void complete_one(void)
{
	struct ibv_cq_init_attr_ex extended = { .cqe = DEPTH };

	comp = ibv_create_comp_channel(context);
	CHECK(comp && (cq = ibv_create_cq(context, DEPTH, NULL, comp, 0)));
	polled = ibv_cq_ex_to_cq(ibv_create_cq_ex(context, &extended));
	join(&from, make_pair(cq, cq), &to, make_pair(polled, make_cq(DEPTH)));
	CHECK_RETURNS(ibv_req_notify_cq(cq, 0), 0);
	CHECK_RETURNS(post_write(&from, 7, IBV_SEND_SIGNALED), 0);
	await_readable(comp->fd);
	CHECK_RETURNS(post_write(&to, 8, IBV_SEND_SIGNALED), 0);
	CHECK_RETURNS(post_write(&to, 9, IBV_SEND_SIGNALED), 0);
	settle();
}

static void take_cm_event(void)
{
	struct rdma_cm_event *event;

	while (rdma_get_cm_event(cm, &event) == 0) {
		CHECK(event->event == RDMA_CM_EVENT_DEVICE_REMOVAL);
		rdma_ack_cm_event(event);
	}
	CHECK(errno == ENODEV);
}

static void join_group(void)
{
	struct sockaddr_in group = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xe0000101) };

	rdma_join_multicast(listener, (struct sockaddr *)&group, NULL);
}

static void destroy_id(void) { CHECK_RETURNS(rdma_destroy_id(listener), 0); }
static void destroy_channel(void) { rdma_destroy_event_channel(cm); }

/* The parent may acknowledge it or not. */
static void destroy_unacknowledged(void)
{
	rdma_destroy_qp(client);
	CHECK_RETURNS(rdma_destroy_id(client), 0);
}

static void destroy_acknowledged(void)
{
	rdma_ack_cm_event(held);
	destroy_unacknowledged();
}

static void take_completion_event(void)
{
	struct ibv_cq *told;
	void *of;

	CHECK(ibv_get_cq_event(comp, &told, &of) == -1 && errno == EIO);
}

static void take_async_event(void)
{
	struct ibv_async_event event;

	CHECK(ibv_get_async_event(context, &event) == 0 && event.event_type == IBV_EVENT_DEVICE_FATAL);
	CHECK(ibv_get_async_event(context, &event) == -1 && errno == EIO);
}

static void poll_and_post(void)
{
	struct ibv_wc wc;

	CHECK(ibv_poll_cq(cq, 1, &wc) == -1 && errno == EIO);
	CHECK(ibv_req_notify_cq(cq, 0) == EIO);
	CHECK(post_write(&from, 10, IBV_SEND_SIGNALED) == EIO);
}

/* The parent is polling: the child ends that in its own copy. */
static void end_poll(void)
{
	CHECK(ibv_next_poll((struct ibv_cq_ex *)polled) == ENOENT);
	ibv_end_poll((struct ibv_cq_ex *)polled);
}

static void destroy_all(void)
{
	ibv_ack_cq_events(cq, 0);
	CHECK_RETURNS(ibv_destroy_qp(from.qp), 0);
	CHECK_RETURNS(ibv_destroy_cq(cq), 0);
	CHECK_RETURNS(ibv_destroy_comp_channel(comp), 0);
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
	CHECK_RETURNS(ibv_dealloc_pd(pd), 0);
	CHECK_RETURNS(ibv_close_device(context), 0);
}

static void exit_only(void) { }

/* A child that makes a request has its own session, if fork handlers ran in it. */
static void have_own(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *own;

	CHECK(list && list[0] && (own = ibv_open_device(list[0])));
	CHECK(ibv_alloc_pd(own));
}

static void have_none(void)
{
	int n;

	CHECK(ibv_get_device_list(&n) && n == 0);
}

static void run_in_child(pid_t (*make)(void), void (*run)(void))
{
	pid_t pid = make();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		alarm(60);
		run();
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	if (status)
		fprintf(stderr, "a child ended with %#x\n", status);
	CHECK(status == 0);
}

/* Waiting events and completions still wait. */
static void look_again(void)
{
	struct ibv_poll_cq_attr none = { .comp_mask = 0 };
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)polled;
	struct rdma_cm_event *event = next(cm, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct ibv_cq *told;
	void *of;

	CHECK(ibv_next_poll(ex) == 0 && ex->wr_id == 9);
	ibv_end_poll(ex);
	CHECK(ibv_start_poll(ex, &none) == ENOENT);
	CHECK_RETURNS(rdma_reject(event->id, NULL, 0), 0);
	rdma_ack_cm_event(event);
	CHECK(ibv_get_cq_event(comp, &told, &of) == 0 && told == cq);
	ibv_ack_cq_events(cq, 1);
	expect(cq, 7, 1, IBV_WC_SUCCESS);
	CHECK_RETURNS(post_write(&from, 11, IBV_SEND_SIGNALED), 0);
	expect(cq, 11, 1, IBV_WC_SUCCESS);
	rdma_ack_cm_event(held);
}

static void inherit(pid_t (*make)(void))
{
	static void (*const all[])(void) = {
		take_cm_event, join_group, destroy_id, destroy_channel, destroy_unacknowledged, destroy_acknowledged,
		take_completion_event, take_async_event, poll_and_post, end_poll, destroy_all, exit_only,
	};
	struct ibv_poll_cq_attr none = { .comp_mask = 0 };

	ask_to_connect();
	complete_one();
	CHECK(ibv_start_poll((struct ibv_cq_ex *)polled, &none) == 0 && ((struct ibv_cq_ex *)polled)->wr_id == 8);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		run_in_child(make, all[i]);
	run_in_child(make, make == fork ? have_own : have_none);
	look_again();
}

void case_inherited(void) { inherit(fork); }
void case_inherited_raw(void) { inherit(_Fork); }
