/* ends.h - queue pairs of one process, connected with each other by number. */
#ifndef ENDS_H
#define ENDS_H

#include "../setup.h"

#define LENGTH 4096u
#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	IBV_ACCESS_REMOTE_ATOMIC)

/* Prints the first call that failed, and how; ends the program. */
static void failed(const char *call, const char *how, int error)
{
	printf("%s: %s %s\n", call, how, strerrorname_np(error));
	exit(0);
}

#define POINTER(to, call)                   \
	do {                                \
		if (!((to) = call))         \
			failed(#call, "NULL, and errno", errno); \
	} while (0)
#define STATUS(call)                        \
	do {                                \
		int status_ = (call);       \
		if (status_)                \
			failed(#call, "returns", status_); \
	} while (0)
#define MINUS(call)                         \
	do {                                \
		if (call)                   \
			failed(#call, "-1, and errno", errno); \
	} while (0)

static struct ibv_context *context;
static struct ibv_pd *pd;
static union ibv_gid gid;
static struct ibv_port_attr port;
static struct ibv_mr *mr;
static char *memory;
static uint8_t rnr_retry = 1;
static int unnotified; /* queues have no channel */
/* Differences of the second end's attributes from those that fit the first's. */
static struct misfit {
	int psn, mtu, reads;
} misfit, none;

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

static void connect_as(struct ibv_qp *qp, uint32_t peer, const struct misfit *m)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = (enum ibv_mtu)(IBV_MTU_1024 + m->mtu), .rq_psn = (uint32_t)m->psn,
		.dest_qp_num = peer, .max_dest_rd_atomic = (uint8_t)(4 + m->reads),
		.min_rnr_timer = 1, .ah_attr = { .is_global = 1, .port_num = 1, .dlid = port.lid,
			.grh = { .dgid = gid, .hop_limit = 1 } },
	};

	STATUS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = rnr_retry,
		.max_rd_atomic = 4 };
	STATUS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void connect_to(struct ibv_qp *qp, uint32_t peer)
{
	connect_as(qp, peer, &none);
}

static void make_end(struct end *e, int shared)
{
	struct ibv_srq_init_attr queue = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 16, shared ? 0 : 16, 1, 1, 0 } };

	POINTER(e->channel, ibv_create_comp_channel(context));
	POINTER(e->cq, ibv_create_cq(context, 64, NULL, unnotified ? NULL : e->channel, 0));
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
	connect_as(b->qp, a->qp->qp_num, &misfit);
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
	STATUS(ibv_query_port(context, 1, &port));
	CHECK((memory = aligned_alloc(4096, LENGTH)));
	POINTER(mr, ibv_reg_mr(pd, memory, LENGTH, ALL_ACCESS));
}

#endif /* ENDS_H */
