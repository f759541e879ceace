/* rdma.c - a queue pair that is connected to itself moves bytes between lanes and a mirror. */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "writers.h"

#define PATIENCE 60000 /* milliseconds; a busy machine */

static struct ibv_context *context;
static struct ibv_pd *pd;

struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	char *mirror;
	struct ibv_mr *mr;
};

void rdma_open(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	CHECK(list && n > 0, "no RDMA device: run it by urdma run or urdma exec");
	context = ibv_open_device(list[0]);
	CHECK(context, "ibv_open_device: %s", strerror(errno));
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	CHECK(pd, "ibv_alloc_pd: %s", strerror(errno));
}

/* A region of a range in which a page may be missing for a moment is refused with EFAULT. */
struct ibv_mr *rdma_register(void *at, size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, at, length, access);

	CHECK(mr || (errno == EFAULT && cell.way->holes), "ibv_reg_mr of %zu bytes: %s", length, strerror(errno));
	return mr;
}

void rdma_deregister(struct ibv_mr *mr)
{
	int status = ibv_dereg_mr(mr);

	CHECK(!status, "ibv_dereg_mr: %s", strerror(status));
}

static void connect_to_itself(struct ibv_qp *qp)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num, .max_dest_rd_atomic = 1,
				   .min_rnr_timer = 12, .ah_attr = { .port_num = 1, .grh.hop_limit = 1 } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1 };

	CHECK(!ibv_query_port(context, 1, &port) && !ibv_query_gid(context, 1, 0, &rtr.ah_attr.grh.dgid), "ibv_query_port, ibv_query_gid");
	rtr.ah_attr.dlid = port.lid;
	rtr.ah_attr.is_global = port.link_layer != IBV_LINK_LAYER_INFINIBAND;
	CHECK(!ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT: %s", strerror(errno));
	CHECK(!ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR: %s", strerror(errno));
	CHECK(!ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					       IBV_QP_MAX_QP_RD_ATOMIC), "RTS: %s", strerror(errno));
}

struct end *end_new(uint64_t *seed)
{
	struct end *e = calloc(1, sizeof(*e));
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };
	void *(*alloc)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "urdma_alloc");

	e->cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = e->cq;
	e->qp = e->cq ? ibv_create_qp(pd, &attr) : NULL;
	CHECK(e->qp, "ibv_create_qp: %s", strerror(errno));
	connect_to_itself(e->qp);
	/* The other end of a transfer is memory of either sort. */
	e->mirror = alloc && below(seed, 2) ? alloc(PAGE) : mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(e->mirror && e->mirror != MAP_FAILED, "the mirror: %s", strerror(errno));
	e->mr = ibv_reg_mr(pd, e->mirror, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	CHECK(e->mr, "ibv_reg_mr of the mirror: %s", strerror(errno));
	return e;
}

static struct ibv_wc completion(struct end *e)
{
	int64_t limit = now() + PATIENCE;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(e->cq, 1, &wc)) == 0 && now() < limit)
		sched_yield();
	CHECK(n == 1, "no completion");
	return wc;
}

static void wait_for(struct end *e, int completions)
{
	while (completions--) {
		struct ibv_wc wc = completion(e);

		CHECK(wc.status == IBV_WC_SUCCESS, "a completion: %s (reason %#x)", ibv_wc_status_str(wc.status), wc.vendor_err);
	}
}

/* Moves length bytes by a Write, a Read or a Send. */
static void move(struct end *e, struct ibv_sge from, uint32_t from_rkey, struct ibv_sge to, uint32_t to_rkey, unsigned how)
{
	struct ibv_send_wr wr = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { to.addr, to_rkey } }, *bad;
	struct ibv_recv_wr receive = { .sg_list = &to, .num_sge = 1 }, *bad_receive;

	if (how == 1) {
		wr.opcode = IBV_WR_RDMA_READ;
		wr.sg_list = &to;
		wr.wr.rdma.remote_addr = from.addr;
		wr.wr.rdma.rkey = from_rkey;
	} else if (how == 2) {
		wr.opcode = IBV_WR_SEND;
		CHECK(!ibv_post_recv(e->qp, &receive, &bad_receive), "ibv_post_recv");
	}
	CHECK(!ibv_post_send(e->qp, &wr, &bad), "ibv_post_send");
	wait_for(e, how == 2 ? 2 : 1);
	cell.moves++;
}

static struct ibv_sge sge(const void *at, const struct ibv_mr *mr)
{
	return (struct ibv_sge){ (uintptr_t)at, (uint32_t)cell.length, mr->lkey };
}

void rdma_out(struct end *e, const struct lane *l, const struct ibv_mr *mr, uint64_t *seed)
{
	unsigned how = (unsigned)below(seed, 3);
	static const char *const names[] = { "a Write took", "a Read took", "a Send took" };

	memset(e->mirror, 0, cell.length);
	move(e, sge(lane_at(l), mr), mr->rkey, sge(e->mirror, e->mr), e->mr->rkey, how);
	pattern_check(e->mirror, l->at, cell.length, l->version, names[how]);
}

void rdma_in(struct end *e, struct lane *l, const struct ibv_mr *mr, uint64_t *seed)
{
	unsigned how = (unsigned)below(seed, 3);
	static const char *const names[] = { "a Write brought", "a Read brought", "a Send brought" };

	l->version = next_version(l->version);
	pattern_fill(e->mirror, l->at, cell.length, l->version);
	move(e, sge(e->mirror, e->mr), e->mr->rkey, sge(lane_at(l), mr), mr->rkey, how);
	pattern_check(lane_at(l), l->at, cell.length, l->version, names[how]);
}

/* Brings a lane's bytes to where they may not arrive: false is an error that the program is
 * told of, after which the queue pair is of no use. */
bool rdma_try_in(struct end *e, struct lane *l, const struct ibv_mr *mr)
{
	struct ibv_sge from = sge(e->mirror, e->mr);
	struct ibv_send_wr wr = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)lane_at(l), mr->rkey } }, *bad;

	l->version = next_version(l->version);
	pattern_fill(e->mirror, l->at, cell.length, l->version);
	CHECK(!ibv_post_send(e->qp, &wr, &bad), "ibv_post_send");
	return completion(e).status == IBV_WC_SUCCESS;
}
