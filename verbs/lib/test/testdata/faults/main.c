/* main.c - what a program finds when faults are injected into it: statuses STATUS...,
 * respond OPCODE STATUS..., calls, managed, events, notified. */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <time.h>
#include <unistd.h>

#include "../setup.h"

#define LENGTH 4096u
#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* The first call that fails is what the program says. */
static void failed(const char *call, int error)
{
	printf("%s %s\n", call, strerrorname_np(error));
	exit(0);
}

#define POINTER(to, call)                   \
	do {                                \
		if (!((to) = call))         \
			failed(#call, errno); \
	} while (0)
#define STATUS(call)                        \
	do {                                \
		int status_ = (call);       \
		if (status_)                \
			failed(#call, status_); \
	} while (0)
#define MINUS(call)                         \
	do {                                \
		if (call)                   \
			failed(#call, errno); \
	} while (0)

static struct ibv_context *context;
static struct ibv_pd *pd;
static union ibv_gid gid;
static struct ibv_mr *mr;
static char *memory;

struct end {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
};

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL_ACCESS, .qkey = 1 };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	mask |= qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	STATUS(ibv_modify_qp(qp, &attr, mask));
}

static void connect_to(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .max_dest_rd_atomic = 4,
		.min_rnr_timer = 1, .ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 1 } },
	};

	STATUS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 1, .max_rd_atomic = 4 };
	STATUS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void make_end(struct end *e, int shared)
{
	struct ibv_srq_init_attr queue = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 16, shared ? 0 : 16, 1, 1, 0 } };

	POINTER(e->channel, ibv_create_comp_channel(context));
	POINTER(e->cq, ibv_create_cq(context, 64, NULL, e->channel, 0));
	if (shared) {
		POINTER(e->srq, ibv_create_srq(pd, &queue));
		attr.srq = e->srq;
	}
	attr.send_cq = attr.recv_cq = e->cq;
	POINTER(e->qp, ibv_create_qp(pd, &attr));
	to_init(e->qp);
}

static void free_end(struct end *e)
{
	STATUS(ibv_destroy_qp(e->qp));
	if (e->srq)
		STATUS(ibv_destroy_srq(e->srq));
	STATUS(ibv_destroy_cq(e->cq));
	STATUS(ibv_destroy_comp_channel(e->channel));
	memset(e, 0, sizeof(*e));
}

static void pair_up(struct end *a, struct end *b)
{
	make_end(a, 0);
	make_end(b, 0);
	connect_to(a->qp, b->qp->qp_num);
	connect_to(b->qp, a->qp->qp_num);
}

static void open_all(void)
{
	struct ibv_device **list;

	POINTER(list, ibv_get_device_list(NULL));
	CHECK(list[0]);
	POINTER(context, ibv_open_device(list[0]));
	ibv_free_device_list(list);
	POINTER(pd, ibv_alloc_pd(context));
	CHECK(ibv_query_gid(context, 1, 0, &gid) == 0);
	CHECK((memory = aligned_alloc(4096, LENGTH)));
	POINTER(mr, ibv_reg_mr(pd, memory, LENGTH, ALL_ACCESS));
}

static int post_send_one(struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
	struct ibv_send_wr *bad = NULL, wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED };
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
	time_t end = time(NULL) + 30;
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

/* For each status a pair whose first send ends with it, and one whose first receive does:
 * what was posted behind them is flushed. */
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
	puts("done");
}

/* What a send of an opcode ends with whose responder answers as it is told. */
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
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7 };
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
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = 0100 };
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

/* ---- events ---- */

/* The number of what an event is about. */
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

/* Says what there is, then which event came, again and again. */
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
		printf("event %d %x\n", event.event_type, about(&event));
		fflush(stdout);
		ibv_ack_async_event(&event);
	}
}

/* How many milliseconds after the post a completion event comes. */
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
	} modes[] = { { "calls", calls }, { "managed", managed }, { "events", events }, { "notified", notified } };

	CHECK(argc > 1);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i].name) == 0) {
			modes[i].run();
			return 0;
		}
	}
	open_all();
	(strcmp(argv[1], "respond") == 0 ? respond : statuses)(argc - 2, argv + 2);
	return 0;
}
