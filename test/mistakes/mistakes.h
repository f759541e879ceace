/*
 * mistakes.h - the beginning of each program of this folder: two queue pairs of one process
 * that are connected to each other. Each program makes one frequent mistake; docs/debugging.md
 * has urdma's message about it.
 */
#ifndef MISTAKES_H
#define MISTAKES_H

#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 65536
#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* One side of a connection. */
struct side {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory; /* BYTES of it */
};

static struct ibv_context *context;
static struct ibv_pd *pd;

/* Ends the program if something fails that is not its mistake. */
static inline void must(int works, const char *what)
{
	if (works)
		return;
	perror(what);
	exit(1);
}

/* How a side is made: with so many entries, work requests each way, and memory. */
struct plan {
	int entries;
	uint32_t sends, receives;
	int access;
	enum ibv_qp_type type;
};

#define PLAN ((struct plan){ .entries = 64, .sends = 16, .receives = 16, .access = RIGHTS, .type = IBV_QPT_RC })

static inline struct side side_new(struct plan p)
{
	struct side s = { 0 };
	struct ibv_qp_init_attr init = { .qp_type = p.type, .cap = { p.sends, p.receives, 1, 1, 64 } };
	struct ibv_device **devices;

	if (!context) {
		devices = ibv_get_device_list(NULL);
		must(devices && *devices && (context = ibv_open_device(*devices)), "ibv_open_device");
		must((pd = ibv_alloc_pd(context)) != NULL, "ibv_alloc_pd");
		ibv_free_device_list(devices);
	}
	must((s.channel = ibv_create_comp_channel(context)) != NULL, "ibv_create_comp_channel");
	must((s.cq = ibv_create_cq(context, p.entries, NULL, s.channel, 0)) != NULL, "ibv_create_cq");
	init.send_cq = init.recv_cq = s.cq;
	must((s.qp = ibv_create_qp(pd, &init)) != NULL, "ibv_create_qp");
	must((s.memory = aligned_alloc(4096, BYTES)) != NULL, "aligned_alloc");
	memset(s.memory, 0, BYTES);
	must((s.mr = ibv_reg_mr(pd, s.memory, BYTES, p.access)) != NULL, "ibv_reg_mr");
	return s;
}

static inline void to_init(struct side *s)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = RIGHTS, .qkey = 0x11111111 };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	must(!ibv_modify_qp(s->qp, &a, mask | (s->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)), "INIT");
}

static inline void to_rtr(struct side *s, uint32_t peer, uint32_t rq_psn)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .rq_psn = rq_psn,
				 .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
				 .ah_attr = { .port_num = 1, .grh.hop_limit = 1 } };
	struct ibv_port_attr port;

	must(!ibv_query_port(context, 1, &port), "ibv_query_port");
	a.ah_attr.dlid = port.lid; /* of InfiniBand; other ports are reached by GID */
	a.ah_attr.is_global = port.link_layer != IBV_LINK_LAYER_INFINIBAND;
	must(!ibv_query_gid(context, 1, 0, &a.ah_attr.grh.dgid), "ibv_query_gid");
	must(!ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
}

static inline void to_rts(struct side *s, uint32_t sq_psn, uint8_t timeout, uint8_t retry_cnt, uint8_t rnr_retry)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS, .sq_psn = sq_psn, .timeout = timeout, .retry_cnt = retry_cnt,
				 .rnr_retry = rnr_retry, .max_rd_atomic = 1 };

	must(!ibv_modify_qp(s->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
}

/* Makes two sides by a plan and connects them. */
static inline void connected(struct side *a, struct side *b, struct plan p)
{
	*a = side_new(p);
	*b = side_new(p);
	to_init(a);
	to_init(b);
	to_rtr(a, b->qp->qp_num, 4711);
	to_rtr(b, a->qp->qp_num, 4711);
	to_rts(a, 4711, 14, 7, 7);
	to_rts(b, 4711, 14, 7, 7);
}

/* Some bytes of a side's memory, from an offset on. */
static inline struct ibv_sge part(const struct side *s, size_t offset, uint32_t length)
{
	return (struct ibv_sge){ .addr = (uintptr_t)s->memory + offset, .length = length, .lkey = s->mr->lkey };
}

/* ibv_post_recv of one element. */
static inline int receive(struct side *s, struct ibv_sge sge)
{
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(s->qp, &wr, &bad);
}

/* ibv_post_send of one element; the peer's memory is what RDMA and atomics are for. */
static inline int post(struct side *s, const struct side *peer, enum ibv_wr_opcode opcode, unsigned int flags, struct ibv_sge sge)
{
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = flags }, *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.rkey = peer->mr->rkey;
		wr.wr.atomic.remote_addr = (uintptr_t)peer->memory;
		wr.wr.atomic.compare_add = 1;
	} else if (peer) {
		wr.wr.rdma.rkey = peer->mr->rkey;
		wr.wr.rdma.remote_addr = (uintptr_t)peer->memory;
	}
	return ibv_post_send(s->qp, &wr, &bad);
}

/* Polls until a completion is there, and gives its status. */
static inline enum ibv_wc_status polled(struct side *s)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(s->cq, 1, &wc)) == 0)
		;
	must(n == 1, "ibv_poll_cq");
	return wc.status;
}

#endif /* MISTAKES_H */
