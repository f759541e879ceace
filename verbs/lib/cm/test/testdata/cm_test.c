/*
 * cm_test.c - the librdmacm half against the fake urdmad: one named case a
 * run. A failed check prints its line and exits with 1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"

#define CHECK(condition)                                                       \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__,  \
				#condition, errno);                            \
			exit(1);                                               \
		}                                                              \
	} while (0)

#define REFUSES(call, error)                                                   \
	do {                                                                   \
		errno = 0;                                                     \
		CHECK((call) == -1 && errno == (error));                       \
	} while (0)

static struct sockaddr_in address(const char *text, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	CHECK(inet_pton(AF_INET, text, &in.sin_addr) == 1);
	return in;
}

static uint32_t handle_of(struct rdma_cm_id *id)
{
	return cm_id_of(id)->handle;
}

static void send_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct urdma_abi_cm_event event = {
		.event = type, .id = handle_of(id), .status = status,
	};

	fake_send(&event);
}

/* Reads the next event, which must be of this type, and acknowledges it. */
static void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	CHECK(rdma_get_cm_event(channel, &event) == 0);
	if (event->event != type)
		fprintf(stderr, "got %s, expected %s\n", rdma_event_str(event->event),
			rdma_event_str(type));
	CHECK(event->event == type);
	CHECK(rdma_ack_cm_event(event) == 0);
}

static struct rdma_cm_id *resolved(struct rdma_event_channel *channel)
{
	struct sockaddr_in to = address("10.0.0.2", 7471);
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(channel, &id, (void *)&to, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000) == 0);
	if (channel)
		expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(rdma_resolve_route(id, 1000) == 0);
	if (channel)
		expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 4, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
}

static struct rdma_cm_id *connected(struct rdma_event_channel *channel)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *id = resolved(channel);

	CHECK(rdma_create_qp(id, NULL, &attr) == 0);
	CHECK(rdma_connect(id, &param) == 0);
	if (channel)
		expect(channel, RDMA_CM_EVENT_ESTABLISHED);
	return id;
}

static void finish(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	CHECK(rdma_destroy_id(id) == 0);
}

/* ---- cases ------------------------------------------------------------------ */

static void test_no_daemon(void)
{
	struct rdma_cm_id *id;
	struct rdma_addrinfo *res;
	int count = 7;

	fake_set_running(false);
	errno = 0;
	CHECK(!rdma_create_event_channel() && errno == ENODEV);
	REFUSES(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), ENODEV);
	CHECK(!rdma_get_devices(&count) && errno == ENODEV && count == 0);
	REFUSES(rdma_getaddrinfo("10.0.0.2", "1", NULL, &res), ENODEV);
}

/* A device that can't be shown under this transport hides no other. */
static void test_impossible_device(void)
{
	struct ibv_context **list;
	int count = 7;

	fake_set_devices(3);
	list = rdma_get_devices(&count);
	CHECK(list && count == 1 && list[0] && !list[1]);
	rdma_free_devices(list);
}

static void test_active(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = {
		.private_data = "hello", .private_data_len = 5,
		.responder_resources = RDMA_MAX_RESP_RES, .initiator_depth = 3,
	};
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *id = resolved(channel);

	CHECK(id->verbs && id->pd && id->port_num == 1);
	CHECK(id->route.addr.addr.ibaddr.sgid.raw[15] == 0x42);
	CHECK(((struct sockaddr_in *)rdma_get_local_addr(id))->sin_addr.s_addr == htonl(0x0a000001));
	CHECK(rdma_get_src_port(id) == htons(40000) && rdma_get_dst_port(id) == htons(7471));
	REFUSES(rdma_connect(id, NULL), EINVAL); /* no queue pair and no parameters */
	CHECK(rdma_create_qp(id, NULL, &attr) == 0);
	CHECK(id->qp->state == IBV_QPS_INIT && id->send_cq->cqe == 4 && id->recv_cq->cqe == 8);
	CHECK(id->send_cq->cq_context == id && id->recv_cq->channel == id->recv_cq_channel);
	REFUSES(rdma_create_qp(id, NULL, &attr), EINVAL);
	param.initiator_depth = 17;
	REFUSES(rdma_connect(id, &param), EINVAL);
	param.initiator_depth = 3;
	CHECK(rdma_connect(id, &param) == 0);
	expect(channel, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(id->qp->state == IBV_QPS_RTS);
	CHECK(fake_ids[handle_of(id)].param.responder_resources == 16);
	CHECK(fake_ids[handle_of(id)].param.initiator_depth == 3);
	CHECK(fake_ids[handle_of(id)].param.qp == 77 && fake_ids[handle_of(id)].param.qp_num == 1077);
	CHECK(fake_ids[handle_of(id)].param.private_data_len == 5);
	CHECK(!memcmp(fake_ids[handle_of(id)].param.private_data, "hello", 5));
	REFUSES(rdma_establish(id), EINVAL);
	CHECK(rdma_disconnect(id) == 0);
	expect(channel, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(id->qp->state == IBV_QPS_ERR);
	finish(id);
	rdma_destroy_event_channel(channel);
}

/* As rping does: the queue pair goes first, and not by rdma_destroy_qp. */
static void test_event_after_destroy_qp(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = connected(channel);

	CHECK(rdma_disconnect(id) == 0);
	CHECK(ibv_destroy_qp(id->qp) == 0);
	expect(channel, RDMA_CM_EVENT_DISCONNECTED);
	id->qp = NULL;
	rdma_destroy_qp(id); /* its completion queues */
	finish(id);
	rdma_destroy_event_channel(channel);
}

static struct rdma_cm_id *listening(struct rdma_event_channel *channel, const char *text)
{
	struct sockaddr_in at = address(text, 7471);
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(channel, &id, (void *)0x55, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&at) == 0);
	CHECK(rdma_listen(id, 3) == 0);
	return id;
}

static uint32_t request_arrives(struct rdma_cm_id *listener)
{
	struct urdma_abi_cm_event event = {
		.event = RDMA_CM_EVENT_CONNECT_REQUEST,
		.id = handle_of(listener),
		.child = fake_new_child(handle_of(listener)),
		.local = { htonl(0x0a000001), htons(7471), 0 },
		.peer = { htonl(0x0a000002), htons(5), 0 },
		.param = { .responder_resources = 200, .initiator_depth = 2,
			   .private_data_len = 256, .private_data = { 9, 8 } },
	};

	fake_send(&event);
	return event.child;
}

static void test_passive(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening(channel, "0.0.0.0");
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	uint32_t child;

	CHECK(!listener->verbs && !listener->pd);
	child = request_arrives(listener);
	CHECK(rdma_get_cm_event(channel, &event) == 0);
	id = event->id;
	CHECK(event->event == RDMA_CM_EVENT_CONNECT_REQUEST && event->listen_id == listener);
	CHECK(id != listener && id->context == (void *)0x55 && id->verbs && id->channel == channel);
	CHECK(handle_of(id) == child);
	CHECK(event->param.conn.private_data_len == 255);
	CHECK(((const uint8_t *)event->param.conn.private_data)[1] == 8);
	CHECK(rdma_get_dst_port(id) == htons(5));
	CHECK(rdma_ack_cm_event(event) == 0);
	REFUSES(rdma_accept(id, NULL), EINVAL);
	CHECK(rdma_create_qp(id, NULL, &attr) == 0);
	CHECK(rdma_accept(id, NULL) == 0);
	CHECK(id->qp->state == IBV_QPS_RTS);
	CHECK(fake_ids[child].param.responder_resources == 16); /* 200 cut to the device's */
	CHECK(fake_ids[child].param.initiator_depth == 2);
	expect(channel, RDMA_CM_EVENT_ESTABLISHED);
	finish(id);
	finish(listener);
	rdma_destroy_event_channel(channel);
}

static void test_reject(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening(channel, "10.0.0.1");
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CHECK(listener->verbs && listener->pd);
	request_arrives(listener);
	CHECK(rdma_get_cm_event(channel, &event) == 0);
	id = event->id;
	CHECK(rdma_ack_cm_event(event) == 0);
	CHECK(rdma_reject(id, "no", 2) == 0);
	CHECK(fake_ids[handle_of(id)].param.private_data_len == 2);
	finish(id);
	finish(listener);
	rdma_destroy_event_channel(channel);
}

static void test_sync_active(void)
{
	struct rdma_cm_id *id = connected(NULL);

	CHECK(id->event && id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	CHECK(rdma_disconnect(id) == 0);
	CHECK(id->event->event == RDMA_CM_EVENT_DISCONNECTED);
	CHECK(rdma_disconnect(id) == 0); /* no second event to wait for */
	finish(id);

	fake_refuse(URDMA_ABI_CM_RESOLVE_ROUTE, ENETUNREACH);
	CHECK(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0);
	REFUSES(rdma_resolve_route(id, 1), ENETUNREACH);
	finish(id);
	/* Every channel of a synchronous id went with it. */
	CHECK(fake_count(URDMA_ABI_CM_CREATE_CHANNEL) == fake_count(URDMA_ABI_CM_DESTROY_CHANNEL));
	CHECK(fake_count(URDMA_ABI_CM_CREATE_ID) == fake_count(URDMA_ABI_CM_DESTROY_ID));
}

static void test_sync_errors(void)
{
	struct sockaddr_in to = address("10.0.0.2", 7471);
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0);
	send_event(id, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH); /* read before the answer */
	REFUSES(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1), EHOSTUNREACH);
	CHECK(id->event->event == RDMA_CM_EVENT_ADDR_ERROR && !id->verbs);
	send_event(id, RDMA_CM_EVENT_REJECTED, 28);
	CHECK(rdma_resolve_route(id, 1) == 0); /* the answer to resolve_addr */
	REFUSES(rdma_resolve_route(id, 1), ECONNREFUSED);
	finish(id);
}

static struct rdma_addrinfo *info_for(const char *node, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res;

	CHECK(rdma_getaddrinfo(node, "7471", &hints, &res) == 0);
	return res;
}

static void test_endpoint(void)
{
	struct rdma_addrinfo *passive = info_for(NULL, RAI_PASSIVE);
	struct rdma_addrinfo *active = info_for("10.0.0.2", RAI_NUMERICHOST);
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *listener, *id, *client;

	CHECK(rdma_create_ep(&listener, passive, NULL, &attr) == 0);
	CHECK(rdma_listen(listener, 0) == 0);
	request_arrives(listener);
	CHECK(rdma_get_request(listener, &id) == 0);
	CHECK(id->qp && id->pd && id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(id->channel != listener->channel);
	CHECK(rdma_accept(id, NULL) == 0 && id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);

	active->ai_connect = strdup("ahead");
	active->ai_connect_len = 5;
	CHECK(rdma_create_ep(&client, active, NULL, &attr) == 0);
	CHECK(client->qp && rdma_connect(client, NULL) == 0);
	CHECK(fake_ids[handle_of(client)].param.private_data_len == 5);
	CHECK(fake_ids[handle_of(client)].param.retry_count == 7);
	rdma_destroy_ep(client);
	rdma_freeaddrinfo(passive);
	rdma_freeaddrinfo(active);
	CHECK(fake_count(URDMA_ABI_CM_CREATE_CHANNEL) == fake_count(URDMA_ABI_CM_DESTROY_CHANNEL));
}

static void test_get_request_async(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening(channel, "0.0.0.0"), *id;

	REFUSES(rdma_get_request(listener, &id), EINVAL);
	finish(listener);
	rdma_destroy_event_channel(channel);
}

/* An event of a synchronous child that urdmad sent before the migration. */
static void test_migrated_event(void)
{
	struct rdma_addrinfo *passive = info_for(NULL, RAI_PASSIVE);
	struct urdma_abi_cm_event early = { .event = RDMA_CM_EVENT_DISCONNECTED };
	struct rdma_cm_id *listener, *id, *second;
	uint32_t channel;

	CHECK(rdma_create_ep(&listener, passive, NULL, NULL) == 0);
	CHECK(rdma_listen(listener, 0) == 0);
	channel = fake_ids[handle_of(listener)].channel;
	early.id = request_arrives(listener);
	fake_send_on(channel, &early);
	CHECK(rdma_get_request(listener, &id) == 0);
	request_arrives(listener);
	CHECK(rdma_get_request(listener, &second) == 0); /* passes the early event on */
	expect(id->channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_ep(second);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	rdma_freeaddrinfo(passive);
}

static void test_migrate(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = connected(NULL);

	send_event(id, RDMA_CM_EVENT_DISCONNECTED, 0); /* unread when it moves */
	CHECK(rdma_migrate_id(id, channel) == 0);
	CHECK(id->channel == channel && !id->event);
	expect(channel, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(rdma_migrate_id(id, NULL) == 0);
	CHECK(id->channel != channel);
	CHECK(rdma_disconnect(id) == 0);
	finish(id);
	rdma_destroy_event_channel(channel);
}

/* Whether the channel's socket is readable, as event loops ask. */
static bool readable(struct rdma_event_channel *channel)
{
	struct pollfd poller = { .fd = channel->fd, .events = POLLIN };

	return poll(&poller, 1, 0) == 1;
}

/* An id that is not synchronous takes its unread events along, in order, and
 * leaves those of others; both sockets tell. A request of a listener that has
 * moved makes an id on the new channel. */
static void test_migrate_pending(void)
{
	struct rdma_event_channel *a = rdma_create_event_channel(), *b = rdma_create_event_channel();
	struct rdma_cm_id *id = connected(a), *other = connected(a), *listener = listening(a, "0.0.0.0");
	struct rdma_cm_event *event;
	uint32_t child;

	send_event(other, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	send_event(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	child = request_arrives(listener);
	send_event(id, RDMA_CM_EVENT_DISCONNECTED, 0);
	CHECK(rdma_migrate_id(id, b) == 0 && id->channel == b);
	CHECK(readable(a) && readable(b));
	expect(b, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(readable(b));
	expect(b, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(!readable(b));
	expect(a, RDMA_CM_EVENT_ADDR_CHANGE);
	CHECK(readable(a));
	CHECK(rdma_migrate_id(listener, b) == 0);
	CHECK(!readable(a) && readable(b));
	CHECK(rdma_get_cm_event(b, &event) == 0 && event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(event->id->channel == b && fake_ids[child].channel == fake_ids[handle_of(listener)].channel);
	send_event(event->id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	CHECK(rdma_migrate_id(event->id, b) == 0); /* where it is */
	id = event->id;
	CHECK(rdma_ack_cm_event(event) == 0);
	expect(b, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	CHECK(!readable(a) && !readable(b));
	REFUSES((fcntl(b->fd, F_SETFL, O_NONBLOCK), rdma_get_cm_event(b, &event)), EAGAIN);
	finish(id);
	rdma_destroy_id(listener);
}

static void test_nonblocking(void)
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
	CHECK(poll(&poller, 1, 0) == 0); /* the destroyed id's event went with it */
	REFUSES(rdma_get_cm_event(channel, &event), EAGAIN);
	gone = resolved(channel);
	send_event(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	send_event(gone, RDMA_CM_EVENT_ROUTE_ERROR, -EIO);
	finish(gone); /* its event lies behind another's */
	expect(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	CHECK(poll(&poller, 1, 0) == 0);
	finish(id);
	rdma_destroy_event_channel(channel);
}

/* Requests that nobody took are given back when the listener goes. */
static void test_unread_request(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening(channel, "0.0.0.0");
	uint32_t a = request_arrives(listener), b = request_arrives(listener), c;

	finish(listener);
	CHECK(!fake_ids[a].channel && !fake_ids[b].channel);

	listener = listening(channel, "0.0.0.0");
	c = request_arrives(listener);
	rdma_destroy_event_channel(channel); /* wrong order, as some programs have it */
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

static void test_destroy_waits(void)
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

static void *wait_for_event(void *channel)
{
	struct rdma_cm_event *event;

	rdma_get_cm_event(channel, &event);
	return NULL;
}

static void test_cancel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved(channel);
	pthread_t thread;
	void *result;

	CHECK(pthread_create(&thread, NULL, wait_for_event, channel) == 0);
	usleep(50000);
	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
	CHECK(result == PTHREAD_CANCELED);
	send_event(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	expect(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	finish(id);
	rdma_destroy_event_channel(channel);
}

/* rping destroys its channel with a thread asleep in it and then returns. */
static void test_destroy_under_reader(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct timespec soon;
	pthread_t thread;
	void *result;

	CHECK(pthread_create(&thread, NULL, wait_for_event, channel) == 0);
	usleep(50000);
	rdma_destroy_event_channel(channel);
	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_sec++;
	CHECK(pthread_timedjoin_np(thread, &result, &soon) == ETIMEDOUT); /* sleeps on */
	CHECK(fake_count(URDMA_ABI_CM_DESTROY_CHANNEL) == 0);
	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
	CHECK(fake_count(URDMA_ABI_CM_DESTROY_CHANNEL) == 1); /* left with the last reader */
}

static void test_daemon_dies(void)
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

/* Makes ids on the shared channel and destroys them with events unread, in
 * hand and acknowledged: whichever the reader got to. */
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

static void test_threads(void)
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

static void test_addresses(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(7471) };
	struct sockaddr_in to = address("10.0.0.2", 1);
	struct sockaddr_storage odd = { .ss_family = AF_UNIX };
	struct rdma_cm_id *id;
	int yes = 1;

	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	REFUSES(rdma_bind_addr(id, NULL), EINVAL);
	REFUSES(rdma_bind_addr(id, (struct sockaddr *)&odd), EAFNOSUPPORT);
	REFUSES(rdma_resolve_addr(id, NULL, NULL, 1), EINVAL);
	REFUSES(rdma_resolve_addr(id, (struct sockaddr *)&odd, (struct sockaddr *)&to, 1), EAFNOSUPPORT);
	CHECK(rdma_get_src_port(id) == 0);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&six) == 0);
	CHECK(rdma_get_local_addr(id)->sa_family == AF_INET6 && rdma_get_src_port(id) == htons(7471));
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &yes, sizeof(yes)) == 0);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&six) == 0);
	CHECK(fake_ids[handle_of(id)].local.family == AF_INET6); /* it is urdmad that knows the option */
	finish(id);
	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(inet_pton(AF_INET6, "::ffff:10.0.0.1", &six.sin6_addr) == 1);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&six) == 0);
	CHECK(!memcmp(rdma_get_local_addr(id), &six, sizeof(six)) && id->verbs);
	CHECK(fake_ids[handle_of(id)].local.family == AF_INET);
	CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&six, 1) == 0);
	expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(!memcmp(rdma_get_peer_addr(id), &six, sizeof(six)));
	CHECK(rdma_get_local_addr(id)->sa_family == AF_INET6);
	finish(id);
	to = address("127.0.0.1", 1);
	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&to) == 0);
	CHECK(!id->verbs && !memcmp(rdma_get_local_addr(id), &to, sizeof(to)));
	six.sin6_addr = in6addr_loopback;
	CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&six, 1) == 0);
	expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	finish(id);
	CHECK(inet_pton(AF_INET6, "fe80::1", &six.sin6_addr) == 1);
	six.sin6_scope_id = 3;
	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&six) == 0);
	CHECK(fake_ids[handle_of(id)].local.family == AF_INET6 && fake_ids[handle_of(id)].local.scope_id == 3);
	CHECK(!memcmp(fake_ids[handle_of(id)].local.addr, &six.sin6_addr, 16));
	CHECK(!memcmp(rdma_get_local_addr(id), &six, sizeof(six)));
	finish(id);
	rdma_destroy_event_channel(channel);
}

static void test_written_addresses(void)
{
	struct urdma_abi_addr four = { .family = AF_INET, .port_be = htons(1), .addr = { 10, 0, 0, 2 } };
	struct urdma_abi_addr six = { .family = AF_INET6, .port_be = htons(2), .scope_id = 3, .addr = { [15] = 1 } };
	struct sockaddr_in want = address("10.0.0.2", 1);
	struct sockaddr_storage got = { 0 };
	const struct sockaddr_in6 *in6 = (const void *)&got;

	cm_address_write(&four, (struct sockaddr *)&got);
	CHECK(memcmp(&got, &want, sizeof(want)) == 0);
	cm_address_write(&six, (struct sockaddr *)&got);
	CHECK(in6->sin6_family == AF_INET6 && in6->sin6_port == htons(2) && in6->sin6_scope_id == 3);
	CHECK(IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr));
}

static void test_getaddrinfo(void)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP };
	struct sockaddr_in from = address("10.0.0.9", 3);
	struct addrinfo *known;
	struct rdma_addrinfo *res;
	struct sockaddr_in *in;

	REFUSES(rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL);
	CHECK(rdma_getaddrinfo("10.0.0.2", "7471", NULL, &res) == 0);
	in = (struct sockaddr_in *)res->ai_dst_addr;
	CHECK(res->ai_family == AF_INET && res->ai_dst_len == sizeof(*in) && !res->ai_src_len);
	CHECK(in->sin_port == htons(7471) && in->sin_addr.s_addr == htonl(0x0a000002));
	CHECK(res->ai_port_space == RDMA_PS_TCP && res->ai_qp_type == IBV_QPT_RC && !res->ai_next);
	rdma_freeaddrinfo(res);

	hints.ai_flags = RAI_PASSIVE;
	CHECK(rdma_getaddrinfo(NULL, "7471", &hints, &res) == 0);
	in = (struct sockaddr_in *)res->ai_src_addr;
	CHECK(res->ai_flags == RAI_PASSIVE && in->sin_addr.s_addr == 0 && !res->ai_dst_len);
	rdma_freeaddrinfo(res);

	hints.ai_flags = 0;
	if (getaddrinfo("localhost", NULL, NULL, &known) == 0) { /* not without an /etc/hosts */
		freeaddrinfo(known);
		CHECK(rdma_getaddrinfo("localhost", NULL, &hints, &res) == 0);
		rdma_freeaddrinfo(res);
	}
	hints.ai_flags = RAI_NUMERICHOST;
	CHECK(rdma_getaddrinfo("localhost", "7471", &hints, &res) == EAI_NONAME);
	CHECK(rdma_getaddrinfo("fd00::2", "7471", &hints, &res) == 0);
	CHECK(res->ai_family == AF_INET6 && res->ai_dst_len == sizeof(struct sockaddr_in6));
	CHECK(((struct sockaddr_in6 *)res->ai_dst_addr)->sin6_addr.s6_addr[15] == 2);
	rdma_freeaddrinfo(res);
	CHECK(rdma_getaddrinfo("10.0.0.2", "no-such-service", &hints, &res) == EAI_SERVICE);
	hints.ai_flags = RAI_FAMILY;
	hints.ai_family = AF_INET6;
	CHECK(rdma_getaddrinfo("::1", "7471", &hints, &res) == 0 && res->ai_family == AF_INET6);
	rdma_freeaddrinfo(res);

	hints = (struct rdma_addrinfo){ .ai_port_space = RDMA_PS_UDP };
	CHECK(rdma_getaddrinfo("10.0.0.2", "7471", &hints, &res) == 0);
	CHECK(res->ai_qp_type == IBV_QPT_UD);
	rdma_freeaddrinfo(res);
	hints.ai_port_space = RDMA_PS_TCP;
	hints.ai_qp_type = IBV_QPT_UD;
	CHECK(rdma_getaddrinfo("10.0.0.2", "7471", &hints, &res) == EAI_SOCKTYPE);

	hints = (struct rdma_addrinfo){
		.ai_src_addr = (struct sockaddr *)&from, .ai_src_len = sizeof(from),
	};
	CHECK(rdma_getaddrinfo("10.0.0.2", "7471", &hints, &res) == 0);
	CHECK(((struct sockaddr_in *)res->ai_src_addr)->sin_port == htons(3));
	rdma_freeaddrinfo(res);
	hints.ai_dst_addr = (struct sockaddr *)&from;
	hints.ai_dst_len = sizeof(from);
	hints.ai_qp_type = IBV_QPT_RC;
	CHECK(rdma_getaddrinfo(NULL, NULL, &hints, &res) == 0);
	CHECK(res->ai_dst_len == sizeof(from) && res->ai_src_len && res->ai_qp_type == IBV_QPT_RC);
	rdma_freeaddrinfo(res);
}

static void test_options(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved(channel), *fresh;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct ibv_ece ece = { .vendor_id = 1 };
	struct ibv_path_data path = { .flags = IBV_PATH_FLAG_GMP };
	uint8_t tos = 3;
	int yes = 1, mask;

	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1) == 0);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &tos, 1) == 0);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)) == 0);
	REFUSES(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &yes, sizeof(yes)), EINVAL);
	REFUSES(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &tos, 1), EINVAL);
	REFUSES(rdma_set_option(id, RDMA_OPTION_ID, 9, &tos, 1), ENOSYS);
	REFUSES(rdma_set_option(id, 9, 0, &tos, 1), ENOSYS);
	REFUSES(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &tos, 1), EINVAL);
	REFUSES(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)), EINVAL);
	path.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	CHECK(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)) == 0);
	expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);

	CHECK(rdma_init_qp_attr(id, &attr, &mask) == 0);
	CHECK(mask == (IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT) && attr.port_num == 1);
	attr.qp_state = IBV_QPS_RTS;
	CHECK(rdma_init_qp_attr(id, &attr, &mask) == 0 && mask == 0 && attr.timeout == 3 && attr.retry_cnt == 7);
	attr.qp_state = IBV_QPS_SQD;
	REFUSES(rdma_init_qp_attr(id, &attr, &mask), EINVAL);

	CHECK(rdma_set_local_ece(id, &ece) == 0);
	CHECK(rdma_get_remote_ece(id, &ece) == 0 && ece.vendor_id == 0);
	REFUSES(rdma_set_local_ece(id, &ece), EINVAL);
	CHECK(rdma_notify(id, IBV_EVENT_COMM_EST) == 0);
	CHECK(rdma_create_id(channel, &fresh, NULL, RDMA_PS_TCP) == 0);
	REFUSES(rdma_notify(fresh, IBV_EVENT_COMM_EST), EINVAL);
	REFUSES(rdma_disconnect(fresh), EINVAL);
	finish(fresh);
	finish(id);
	rdma_destroy_event_channel(channel);
}

static void test_external_qp(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = { .qp_num = 42 }; /* in no queue pair of ours */
	struct ibv_qp_attr attr_qp = { 0 };
	int mask;
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *id = resolved(channel);
	struct ibv_qp *qp = ibv_create_qp(id->pd, &attr);

	CHECK(rdma_connect(id, &param) == 0);
	CHECK(fake_ids[handle_of(id)].param.qp == 0 && fake_ids[handle_of(id)].param.qp_num == 42);
	expect(channel, RDMA_CM_EVENT_ESTABLISHED); /* iWARP: one step */
	CHECK(qp->state == IBV_QPS_RESET);
	finish(id);

	fake_set_transport(IBV_TRANSPORT_IB);
	id = resolved(channel);
	param.qp_num = qp->qp_num;
	CHECK(rdma_connect(id, &param) == 0);
	CHECK(fake_ids[handle_of(id)].param.qp == 77 && fake_ids[handle_of(id)].param.qp_num == 1077);
	expect(channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(qp->state == IBV_QPS_RTS);
	attr_qp.qp_state = IBV_QPS_RTR;
	CHECK(rdma_init_qp_attr(id, &attr_qp, &mask) == 0);
	CHECK(mask == (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		       IBV_QP_MIN_RNR_TIMER));
	CHECK(attr_qp.path_mtu == IBV_MTU_1024 && attr_qp.ah_attr.is_global && attr_qp.ah_attr.grh.dgid.raw[15] == 2);
	CHECK(attr_qp.ah_attr.grh.dgid.raw[10] == 0xff && attr_qp.ah_attr.grh.dgid.raw[12] == 10);
	CHECK(rdma_establish(id) == 0);
	CHECK(fake_count(URDMA_ABI_CM_ACCEPT) == 0); /* it was established already */
	CHECK(rdma_disconnect(id) == 0 && qp->state == IBV_QPS_ERR);
	expect(channel, RDMA_CM_EVENT_DISCONNECTED);
	ibv_destroy_qp(qp);
	send_event(id, RDMA_CM_EVENT_DISCONNECTED, 0); /* the queue pair is gone: no harm */
	expect(channel, RDMA_CM_EVENT_DISCONNECTED);
	finish(id);
	rdma_destroy_event_channel(channel);
}

static void test_refusals(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_srq_init_attr srq = { .attr.max_wr = 1 };
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *id = resolved(channel);
	struct sockaddr_in group = address("224.0.0.1", 1);

	REFUSES(rdma_join_multicast(id, (struct sockaddr *)&group, NULL), EINVAL);
	REFUSES(rdma_leave_multicast(id, (struct sockaddr *)&group), EADDRNOTAVAIL);
	REFUSES(rdma_create_srq(id, NULL, &srq), EOPNOTSUPP);
	attr.qp_type = IBV_QPT_UD;
	REFUSES(rdma_create_qp(id, NULL, &attr), EOPNOTSUPP);
	CHECK(!id->send_cq && !id->recv_cq && !id->send_cq_channel && !id->qp);
	finish(id);
	rdma_destroy_event_channel(channel);
}

/* What succeeds leaves errno alone, whatever was looked at on the way. */
static void test_errno(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel(), *other = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved(channel);
	struct rdma_cm_event *event;

	send_event(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	errno = EXDEV;
	CHECK(rdma_get_cm_event(channel, &event) == 0 && errno == EXDEV);
	CHECK(rdma_ack_cm_event(event) == 0 && errno == EXDEV);
	CHECK(rdma_migrate_id(id, other) == 0 && errno == EXDEV);
	CHECK(rdma_destroy_id(id) == 0 && errno == EXDEV);
	rdma_destroy_event_channel(channel);
	rdma_destroy_event_channel(other);
	CHECK(errno == EXDEV);
}

static void test_strings(void)
{
	for (int i = -1; i < 18; i++)
		printf("%d %s\n", i, rdma_event_str((enum rdma_cm_event_type)i));
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "no_daemon", test_no_daemon },
	{ "impossible_device", test_impossible_device },
	{ "active", test_active },
	{ "event_after_destroy_qp", test_event_after_destroy_qp },
	{ "passive", test_passive },
	{ "reject", test_reject },
	{ "sync_active", test_sync_active },
	{ "sync_errors", test_sync_errors },
	{ "endpoint", test_endpoint },
	{ "get_request_async", test_get_request_async },
	{ "migrated_event", test_migrated_event },
	{ "migrate", test_migrate },
	{ "migrate_pending", test_migrate_pending },
	{ "errno", test_errno },
	{ "nonblocking", test_nonblocking },
	{ "unread_request", test_unread_request },
	{ "destroy_waits", test_destroy_waits },
	{ "cancel", test_cancel },
	{ "destroy_under_reader", test_destroy_under_reader },
	{ "daemon_dies", test_daemon_dies },
	{ "threads", test_threads },
	{ "addresses", test_addresses },
	{ "written_addresses", test_written_addresses },
	{ "getaddrinfo", test_getaddrinfo },
	{ "options", test_options },
	{ "external_qp", test_external_qp },
	{ "refusals", test_refusals },
	{ "strings", test_strings },
};

int main(int argc, char **argv)
{
	alarm(20);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 2)
			puts(cases[i].name);
		else if (!strcmp(argv[1], cases[i].name))
			return cases[i].run(), 0;
	}
	return argc < 2 ? 0 : 2;
}
