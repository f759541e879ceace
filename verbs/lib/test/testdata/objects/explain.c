/* explain.c - mistakes that URDMA_EXPLAIN explains; objects_test.go reads standard error. */
#include <dlfcn.h>
#include <stdbool.h>

#include "objects.h"

static void written_without_right(bool extended)
{
	struct end a, b;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_async_event event;
	struct ibv_wc wc;
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_cq_init_attr_ex wanted = { .cqe = 16 };
	struct ibv_cq_ex *ex;

	pair_up(&a, &b, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE);
	if (extended) { /* another queue pair, because its completions are read in another way */
		CHECK((ex = ibv_create_cq_ex(context, &wanted)));
		CHECK_RETURNS(ibv_destroy_qp(a.qp), 0);
		CHECK((a.qp = new_qp(IBV_QPT_RC, ibv_cq_ex_to_cq(ex))));
		to_init(a.qp, 0);
		to_rtr(a.qp, b.qp->qp_num);
		to_rts(a.qp);
		sge = (struct ibv_sge){ (uintptr_t)a.memory, 64, 7 };
		wr = (struct ibv_send_wr){ .wr_id = 9, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
		CHECK_RETURNS(post(&a, &wr), 0);
		while (ibv_start_poll(ex, &attr) == ENOENT)
			;
		CHECK(ex->status == IBV_WC_LOC_PROT_ERR && ibv_wc_read_vendor_err(ex) == 0x0401);
		ibv_end_poll(ex);
		return;
	}
	wr = write_to(&a, b.mr->rkey, (uintptr_t)b.memory + 100, 64, &sge);
	CHECK_RETURNS(post(&a, &wr), 0);
	wc = completion(&a, IBV_WC_REM_ACCESS_ERR);
	CHECK(wc.vendor_err == 0x0102);
	CHECK_RETURNS(ibv_get_async_event(context, &event), 0);
	CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR);
	ibv_ack_async_event(&event);
	wr = write_to(&a, b.mr->rkey, (uintptr_t)b.memory, 64, &sge); /* flushed work needs no explanation */
	CHECK_RETURNS(post(&a, &wr), 0);
	wc = completion(&a, IBV_WC_WR_FLUSH_ERR);
	CHECK(wc.vendor_err == 0x0102);
	end_free(&a);
	end_free(&b);
}

/* More completions than the queue holds, none of them polled. */
static void overrun(bool extended)
{
	struct ibv_cq_init_attr_ex wanted = { .cqe = 1 };
	struct ibv_poll_cq_attr attr = { 0 };
	struct end a, b;
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_cq_ex *ex;
	struct ibv_async_event event;
	struct ibv_wc wc;
	int got;

	pair_up(&a, &b, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK_RETURNS(ibv_destroy_qp(a.qp), 0);
	CHECK_RETURNS(ibv_destroy_cq(a.cq), 0);
	CHECK((ex = ibv_create_cq_ex(context, &wanted)));
	a.cq = ibv_cq_ex_to_cq(ex);
	a.qp = new_qp(IBV_QPT_RC, a.cq);
	to_init(a.qp, 0);
	to_rtr(a.qp, b.qp->qp_num);
	to_rts(a.qp);
	CHECK(a.cq->cqe < 16);
	for (int i = 0; i < 16; i++) {
		wr = write_to(&a, 7, 0, 0, &sge);
		CHECK_RETURNS(post(&a, &wr), 0);
	}
	do {
		CHECK_RETURNS(ibv_get_async_event(context, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_CQ_ERR);
	for (int i = 0; i < 2; i++) { /* explained once */
		if (extended) {
			while ((got = ibv_start_poll(ex, &attr)) == 0)
				ibv_end_poll(ex);
			CHECK(got == EOVERFLOW);
		} else {
			while ((got = ibv_poll_cq(a.cq, 1, &wc)) > 0)
				;
			CHECK(got == -1 && errno == EOVERFLOW);
		}
	}
}

void case_mark(void)
{
	int (*mark)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "urdma_mark");

	CHECK(mark);
	CHECK(mark("the objects' mark") == 0);
	CHECK(mark("") == EINVAL);
	CHECK(mark(NULL) == EINVAL);
}

/* Requests refused by the library itself, and by urdmad. */
static void beyond_limits(struct ibv_cq *cq, struct ibv_qp *qp)
{
	static char memory[64];
	struct ibv_qp_init_attr pair = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1 << 30, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = 1,
		.max_dest_rd_atomic = 200,
		.ah_attr = { .is_global = 1, .port_num = 1 } };

	CHECK(!ibv_create_qp(pd, &pair) && errno == EINVAL);
	CHECK(!ibv_create_cq(context, 1 << 30, NULL, NULL, 0) && errno == EINVAL);
	CHECK(!ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
	CHECK(!ibv_reg_mr(pd, NULL, sizeof(memory), IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT);
	CHECK(!ibv_reg_mr(pd, (void *)"constant", 8, IBV_ACCESS_LOCAL_WRITE) && errno == EFAULT);
	CHECK(!ibv_reg_mr(pd, memory, SIZE_MAX, 0) && errno == EINVAL);
	to_init(qp, 0);
	CHECK_RETURNS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), EINVAL);
}

void case_explain(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_qp *qp;
	struct ibv_cq *cq;

	written_without_right(false);
	written_without_right(true);
	CHECK((cq = ibv_create_cq(context, 16, NULL, NULL, 0)));
	CHECK((qp = new_qp(IBV_QPT_RC, cq)));
	CHECK_RETURNS(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	beyond_limits(cq, qp);
	overrun(false);
	overrun(true);
}
