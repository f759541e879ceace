/* limits.c - one program can have as many of everything as ibv_query_device states. */
#include <sys/mman.h>

#include "objects.h"

static struct ibv_device_attr_ex device;

/* Creates so many of them, and destroys them. */
static void has(const char *name, int most, void *(*make)(void), int (*destroy)(void *))
{
	void **made = calloc((size_t)most, sizeof(*made));
	int n;

	CHECK(most > 0 && made);
	for (n = 0; n < most && (made[n] = make()); n++)
		;
	if (n < most) {
		fprintf(stderr, "%s is %d, and after %d: errno %d\n", name, most, n, errno);
		exit(1);
	}
	while (n-- > 0)
		CHECK_RETURNS(destroy(made[n]), 0);
	free(made);
}

#define HAS(what, make, destroy) has("max_" #what, device.orig_attr.max_##what, make, destroy)

static uint8_t page[4096];
static struct ibv_cq *queue;

static void *make_pd(void) { return ibv_alloc_pd(context); }
static int destroy_pd(void *o) { return ibv_dealloc_pd(o); }
static void *make_mr(void) { return ibv_reg_mr(pd, page, sizeof(page), IBV_ACCESS_LOCAL_WRITE); }
static int destroy_mr(void *o) { return ibv_dereg_mr(o); }
static void *make_mw(void) { return ibv_alloc_mw(pd, IBV_MW_TYPE_2); }
static int destroy_mw(void *o) { return ibv_dealloc_mw(o); }
static void *make_cq(void) { return ibv_create_cq(context, 1, NULL, NULL, 0); }
static int destroy_cq(void *o) { return ibv_destroy_cq(o); }
static int destroy_srq(void *o) { return ibv_destroy_srq(o); }

static void *make_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return ibv_create_srq(pd, &attr);
}

static struct ibv_qp *datagram_qp(void)
{
	struct ibv_qp_init_attr attr = { .send_cq = queue, .recv_cq = queue, .qp_type = IBV_QPT_UD, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	if (qp)
		CHECK_RETURNS(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
	return qp;
}

static union ibv_gid group = { .raw = { 0xff, 0x0e, [10] = 0xff, 0xff, 239, 1 } };

/* Attaches each to one group. */
static void *make_member(void)
{
	struct ibv_qp *qp = datagram_qp();

	return qp && !ibv_attach_mcast(qp, &group, 0) ? qp : NULL;
}

static int destroy_member(void *o)
{
	CHECK_RETURNS(ibv_detach_mcast(o, &group, 0), 0);
	return ibv_destroy_qp(o);
}

/* The longest queues, with the most elements. */
static void has_long_queues(const struct ibv_device_attr *d)
{
	struct ibv_cq *cq = ibv_create_cq(context, d->max_cqe, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {
		(uint32_t)d->max_qp_wr, (uint32_t)d->max_qp_wr, (uint32_t)d->max_sge, (uint32_t)d->max_sge, 0 } };
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = (uint32_t)d->max_srq_wr,
		.max_sge = (uint32_t)d->max_srq_sge } };
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);
	struct ibv_srq *srq = ibv_create_srq(pd, &shared);

	CHECK(cq && qp && srq);
	CHECK_RETURNS(ibv_destroy_srq(srq), 0);
	CHECK_RETURNS(ibv_destroy_qp(qp), 0);
	CHECK_RETURNS(ibv_destroy_cq(cq), 0);
}

/* Outstanding RDMA Reads, and their elements. */
static void has_reads(const struct ibv_device_attr *d)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, (uint32_t)d->max_sge_rd, 1, 0 } };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = (uint8_t)d->max_qp_rd_atom,
				   .ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 1 } } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 14, .max_rd_atomic = (uint8_t)d->max_qp_init_rd_atom };
	struct ibv_sge *sge = calloc((size_t)d->max_sge_rd, sizeof(*sge));
	struct ibv_send_wr wr;
	struct end a, b;

	CHECK(d->max_qp_init_rd_atom > 0 && d->max_qp_init_rd_atom <= UINT8_MAX && d->max_qp_rd_atom > 0 &&
		d->max_qp_rd_atom <= UINT8_MAX);
	end_init(&a, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE);
	end_init(&b, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	CHECK_RETURNS(ibv_destroy_qp(a.qp), 0);
	init.send_cq = init.recv_cq = a.cq;
	CHECK((a.qp = ibv_create_qp(pd, &init)));
	to_init(a.qp, 0);
	to_rtr(a.qp, b.qp->qp_num);
	to_rtr(b.qp, a.qp->qp_num);
	to_rts(a.qp);
	wr = request(&a, IBV_WR_RDMA_READ, 64, sge);
	for (int i = 0; i < d->max_sge_rd; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)a.memory + 64 * (size_t)i, 64, a.mr->lkey };
	wr.num_sge = d->max_sge_rd;
	wr.wr.rdma.remote_addr = (uintptr_t)b.memory;
	wr.wr.rdma.rkey = b.mr->rkey;
	CHECK_RETURNS(post(&a, &wr), 0);
	completion(&a, IBV_WC_SUCCESS);
	CHECK_RETURNS(ibv_modify_qp(b.qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET }, IBV_QP_STATE), 0);
	to_init(b.qp, 0);
	CHECK_RETURNS(ibv_modify_qp(b.qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
	CHECK_RETURNS(ibv_modify_qp(b.qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC), 0);
	end_free(&a);
	end_free(&b);
	free(sge);
}

static void has_groups(const struct ibv_device_attr *d)
{
	struct ibv_qp *qp = datagram_qp();

	CHECK(qp && d->max_mcast_grp > 0);
	for (int i = 0; i < 2 * d->max_mcast_grp; i++) {
		group.raw[14] = (uint8_t)(i % d->max_mcast_grp >> 8);
		group.raw[15] = (uint8_t)(i % d->max_mcast_grp);
		CHECK_RETURNS((i < d->max_mcast_grp ? ibv_attach_mcast : ibv_detach_mcast)(qp, &group, 0), 0);
	}
	CHECK_RETURNS(ibv_destroy_qp(qp), 0);
}

static void has_memory(uint64_t most)
{
	void *at = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct ibv_mr *mr;

	CHECK(at != MAP_FAILED);
	CHECK((mr = ibv_reg_mr(pd, at, most, IBV_ACCESS_LOCAL_WRITE)));
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
	munmap(at, most);
}

static void has_device_memory(uint64_t most)
{
	struct ibv_dm *dm = ibv_alloc_dm(context, &(struct ibv_alloc_dm_attr){ .length = most });

	CHECK(dm);
	CHECK_RETURNS(ibv_free_dm(dm), 0);
}

void case_limits(void)
{
	const struct ibv_device_attr *d = &device.orig_attr;

	CHECK_RETURNS(ibv_query_device_ex(context, NULL, &device), 0);
	CHECK_RETURNS(ibv_dealloc_pd(pd), 0);
	HAS(pd, make_pd, destroy_pd);
	CHECK((pd = ibv_alloc_pd(context)));
	HAS(cq, make_cq, destroy_cq);
	HAS(mr, make_mr, destroy_mr);
	HAS(mw, make_mw, destroy_mw);
	HAS(srq, make_srq, destroy_srq);
	CHECK((queue = ibv_create_cq(context, 1, NULL, NULL, 0)));
	HAS(qp, make_member, destroy_member);
	CHECK(d->max_mcast_qp_attach <= d->max_qp &&
		d->max_total_mcast_qp_attach <= d->max_mcast_grp * d->max_mcast_qp_attach &&
	      d->max_res_rd_atom <= d->max_qp_rd_atom * d->max_qp);
	has_groups(d);
	has_long_queues(d);
	has_reads(d);
	has_memory(d->max_mr_size);
	has_device_memory(device.max_dm_size);
}
