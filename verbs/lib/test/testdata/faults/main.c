/* main.c - prints the effects of injected faults: statuses STATUS..., respond OPCODE STATUS..., errnos N,
 * calls, managed, events, notified. */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <time.h>
#include <unistd.h>

#include "ends.h"

static int post_send_one(struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
	struct ibv_send_wr *bad = NULL, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED };
	int status;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)memory;
		wr.wr.atomic.rkey = mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)memory;
		wr.wr.rdma.rkey = mr->rkey;
	}
	status = ibv_post_send(qp, &wr, &bad);
	CHECK(!status == !bad);
	return status;
}

static int post_recv_one(struct ibv_qp *qp, struct ibv_srq *srq, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
	struct ibv_recv_wr *bad = NULL, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	int status = srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);

	CHECK(!status == !bad);
	return status;
}

static void expect(struct ibv_cq *cq, uint64_t id, int status)
{
	time_t end = time(NULL) + 60;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		CHECK(time(NULL) < end);
	CHECK(n == 1);
	if (wc.wr_id == id && (int)wc.status == status)
		return;
	fprintf(stderr, "completion of %lu: %s; expected of %lu: %s\n", wc.wr_id, ibv_wc_status_str(wc.status), id,
		ibv_wc_status_str((enum ibv_wc_status)status));
	exit(1);
}

/* For each status a pair whose first send completes with it, and one whose first receive does: later work
 * is flushed. */
static void statuses(int n, char **status)
{
	struct end a = { 0 }, b = { 0 };

	for (int i = 0; i < n; i++) {
		pair_up(&a, &b);
		STATUS(post_send_one(a.qp, 1, IBV_WR_RDMA_WRITE));
		expect(a.cq, 1, atoi(status[i]));
		STATUS(post_send_one(a.qp, 2, IBV_WR_RDMA_WRITE));
		expect(a.cq, 2, IBV_WC_WR_FLUSH_ERR);
		free_end(&a);
		free_end(&b);
	}
	for (int i = 0; i < n; i++) {
		pair_up(&a, &b);
		STATUS(post_recv_one(b.qp, NULL, 3));
		STATUS(post_recv_one(b.qp, NULL, 4));
		STATUS(post_send_one(a.qp, 1, IBV_WR_SEND));
		expect(b.cq, 3, atoi(status[i]));
		expect(b.cq, 4, IBV_WC_WR_FLUSH_ERR);
		expect(a.cq, 1, IBV_WC_REM_OP_ERR);
		free_end(&a);
		free_end(&b);
	}
	for (int i = 0; i < n; i++)
		puts(ibv_wc_status_str((enum ibv_wc_status)atoi(status[i])));
}

/* Prints the errno value of each of so many calls, all of which fail. */
static void errnos(int n, char **count)
{
	(void)n;
	for (int i = atoi(*count); i > 0; i--) {
		CHECK(ibv_alloc_pd(context) == NULL);
		printf("%d\n", errno);
	}
}

/* Prints the status of a send with this opcode for each answer of its responder. */
static void respond(int n, char **pairs)
{
	struct end a = { 0 }, b = { 0 };

	for (int i = 0; i + 1 < n; i += 2) {
		pair_up(&a, &b);
		STATUS(post_recv_one(b.qp, NULL, 3));
		STATUS(post_send_one(a.qp, 1, (enum ibv_wr_opcode)atoi(pairs[i])));
		expect(a.cq, 1, atoi(pairs[i + 1]));
		STATUS(post_send_one(a.qp, 2, IBV_WR_RDMA_WRITE));
		expect(a.cq, 2, atoi(pairs[i + 1]) ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
		free_end(&a);
		free_end(&b);
	}
	puts("done");
}

/* ---- rdma_cm: a connection of this process with itself ---- */

static struct rdma_cm_event *await(struct rdma_event_channel *channel, enum rdma_cm_event_type want)
{
	struct rdma_cm_event *event;

	CHECK(rdma_get_cm_event(channel, &event) == 0);
	if (event->event != want) {
		printf("%s\n", rdma_event_str(event->event));
		exit(0);
	}
	return event;
}

/* An id with a queue pair, ready to connect. */
static struct rdma_cm_id *resolved(struct rdma_event_channel *channel, struct sockaddr_in *to)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct rdma_cm_id *id;

	MINUS(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	MINUS(rdma_resolve_addr(id, NULL, (struct sockaddr *)to, 1000));
	rdma_ack_cm_event(await(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	MINUS(rdma_resolve_route(id, 1000));
	rdma_ack_cm_event(await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED));
	MINUS(rdma_create_qp(id, NULL, &attr));
	return id;
}

static struct rdma_cm_id *requested(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event = await(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = event->id;

	rdma_ack_cm_event(event);
	return id;
}

static void managed(void)
{
	struct rdma_event_channel *channel, *other;
	struct rdma_cm_id *listener, *id, *accepted;
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr("198.18.0.1") };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1, .retry_count = 7,
		.rnr_retry_count = 7 };
	int yes = 1;

	POINTER(channel, rdma_create_event_channel());
	POINTER(other, rdma_create_event_channel());
	MINUS(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
	MINUS(rdma_set_option(listener, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)));
	MINUS(rdma_bind_addr(listener, (struct sockaddr *)&address));
	MINUS(rdma_listen(listener, 1));
	address.sin_port = rdma_get_src_port(listener);
	id = resolved(channel, &address);
	MINUS(rdma_connect(id, &param));
	accepted = requested(channel);
	MINUS(rdma_reject(accepted, NULL, 0));
	MINUS(rdma_destroy_id(accepted));
	rdma_ack_cm_event(await(channel, RDMA_CM_EVENT_REJECTED));
	rdma_destroy_qp(id);
	MINUS(rdma_destroy_id(id));

	id = resolved(channel, &address);
	MINUS(rdma_connect(id, &param));
	accepted = requested(channel);
	MINUS(rdma_migrate_id(accepted, other));
	MINUS(rdma_create_qp(accepted, NULL, &attr));
	MINUS(rdma_accept(accepted, &param));
	rdma_ack_cm_event(await(channel, RDMA_CM_EVENT_ESTABLISHED));
	rdma_ack_cm_event(await(other, RDMA_CM_EVENT_ESTABLISHED));
	MINUS(rdma_disconnect(id));
	puts("nothing failed");
}

/* ---- every call of libibverbs, in an order in which each succeeds ---- */

static void datagrams(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1, 0 }, .send_cq = cq, .recv_cq = cq };
	union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [15] = 1 } };
	struct ibv_qp *qp;

	POINTER(qp, ibv_create_qp(pd, &attr));
	to_init(qp);
	STATUS(ibv_attach_mcast(qp, &group, 0));
	STATUS(ibv_detach_mcast(qp, &group, 0));
	STATUS(ibv_destroy_qp(qp));
}

static void domains(void)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1,
		.oflags = 0100 };
	struct ibv_qp_init_attr_ex target = { .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD };
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
					 .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_qp *made, *opened;
	struct ibv_xrcd *xrcd;

	POINTER(xrcd, ibv_open_xrcd(context, &attr));
	target.xrcd = open.xrcd = xrcd;
	POINTER(made, ibv_create_qp_ex(context, &target));
	open.qp_num = made->qp_num;
	POINTER(opened, ibv_open_qp(context, &open));
	STATUS(ibv_destroy_qp(opened));
	STATUS(ibv_destroy_qp(made));
	STATUS(ibv_close_xrcd(xrcd));
}

static void calls(void)
{
	struct end a = { 0 }, b = { 0 }, c = { 0 };
	struct ibv_srq_attr srq = { .srq_limit = 1 };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_mw *mw;

	open_all();
	make_end(&a, 1);
	pair_up(&b, &c);
	STATUS(ibv_resize_cq(a.cq, 128));
	STATUS(ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init));
	STATUS(ibv_modify_srq(a.srq, &srq, IBV_SRQ_LIMIT));
	STATUS(ibv_query_srq(a.srq, &srq));
	STATUS(post_recv_one(NULL, a.srq, 1));
	STATUS(post_recv_one(b.qp, NULL, 1));
	STATUS(post_send_one(b.qp, 1, IBV_WR_RDMA_WRITE));
	POINTER(mw, ibv_alloc_mw(pd, IBV_MW_TYPE_2));
	STATUS(ibv_dealloc_mw(mw));
	datagrams(a.cq);
	domains();
	free_end(&a);
	free_end(&b);
	free_end(&c);
	STATUS(ibv_dereg_mr(mr));
	STATUS(ibv_dealloc_pd(pd));
	MINUS(ibv_close_device(context));
	puts("nothing failed");
}

static void flows(void)
{
	struct ibv_flow_attr all = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(all), .port = 1 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RAW_PACKET, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_flow *flow;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	open_all();
	POINTER(cq, ibv_create_cq(context, 8, NULL, NULL, 0));
	init.send_cq = init.recv_cq = cq;
	POINTER(qp, ibv_create_qp(pd, &init));
	POINTER(flow, ibv_create_flow(qp, &all));
	STATUS(ibv_destroy_flow(flow));
	puts("nothing failed");
}

/* ---- events ---- */

/* Returns the number of the object of an event. */
static uint32_t about(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return event->element.cq->handle;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return event->element.srq->handle;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return event->element.qp->qp_num;
	case IBV_EVENT_DEVICE_FATAL:
		return 0;
	default:
		return (uint32_t)event->element.port_num;
	}
}

/* Prints the existing objects, then each event that comes, for ever. */
static void events(void)
{
	struct ibv_async_event event;
	struct end a = { 0 }, b = { 0 };

	open_all();
	for (;;) {
		make_end(&a, 0);
		make_end(&b, 1);
		printf("%x %u %u\n", a.qp->qp_num, a.cq->handle, b.srq->handle);
		fflush(stdout);
		CHECK(ibv_get_async_event(context, &event) == 0);
		printf("event %d %x %s\n", event.event_type, about(&event), ibv_event_type_str(event.event_type));
		fflush(stdout);
		ibv_ack_async_event(&event);
	}
}

/* Prints how many milliseconds after the post a completion event comes. */
static void notified(void)
{
	struct end a = { 0 }, b = { 0 };
	struct timespec begun, now;
	struct ibv_cq *cq;
	void *its;

	open_all();
	pair_up(&a, &b);
	STATUS(ibv_req_notify_cq(a.cq, 0));
	clock_gettime(CLOCK_MONOTONIC, &begun);
	STATUS(post_send_one(a.qp, 1, IBV_WR_RDMA_WRITE));
	expect(a.cq, 1, IBV_WC_SUCCESS);
	MINUS(ibv_get_cq_event(a.channel, &cq, &its));
	clock_gettime(CLOCK_MONOTONIC, &now);
	CHECK(cq == a.cq);
	ibv_ack_cq_events(cq, 1);
	printf("%ld\n", (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = { { "calls", calls }, { "flows", flows }, { "managed", managed }, { "events", events }, { "notified", notified } };

	CHECK(argc > 1);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i].name) == 0) {
			modes[i].run();
			return 0;
		}
	}
	open_all();
	(strcmp(argv[1], "respond") == 0 ? respond : strcmp(argv[1], "errnos") == 0 ? errnos : statuses)(argc - 2, argv + 2);
	return 0;
}
