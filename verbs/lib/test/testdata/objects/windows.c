/* windows.c - memory windows of both types, with each way of posting. */
#include "objects.h"

#define BINDABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)
#define AT 4096u

static void write_through(struct end *a, struct end *b, uint32_t rkey, enum ibv_wc_status want)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = write_to(a, rkey, (uintptr_t)b->memory + AT, 100, &sge);

	memset(a->memory, 7, 100);
	memset(b->memory, 0, LENGTH);
	CHECK_RETURNS(post(a, &wr), 0);
	completion(a, want);
	CHECK(b->memory[AT] == (want ? 0 : 7) && b->memory[AT + 99] == (want ? 0 : 7) && !b->memory[AT + 100]);
}

static struct ibv_mw_bind_info part_of(struct end *b, uint64_t length)
{
	/* Local write is not a right of windows; programs request it nevertheless. */
	return (struct ibv_mw_bind_info){ b->mr, (uintptr_t)b->memory + AT, length,
					  IBV_ACCESS_REMOTE_WRITE | (length ? IBV_ACCESS_LOCAL_WRITE : 0) };
}

/* Resets and reconnects after an error, as programs that continue do. */
static void begin_anew(struct end *a, struct end *b)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	CHECK_RETURNS(ibv_modify_qp(a->qp, &reset, IBV_QP_STATE), 0);
	CHECK_RETURNS(ibv_modify_qp(b->qp, &reset, IBV_QP_STATE), 0);
	to_init(a->qp, IBV_ACCESS_REMOTE_WRITE);
	to_init(b->qp, IBV_ACCESS_REMOTE_WRITE);
	to_rtr(a->qp, b->qp->qp_num);
	to_rtr(b->qp, a->qp->qp_num);
	to_rts(a->qp);
	to_rts(b->qp);
}

void case_windows1(void)
{
	struct end a, b;
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .wr_id = 5, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;
	uint32_t before;

	CHECK(mw && mw->type == IBV_MW_TYPE_1 && mw->pd == pd);
	pair_up(&a, &b, IBV_QPT_RC, BINDABLE);
	for (int i = 0; i < 300; i++) { /* keys wrap around */
		before = mw->rkey;
		bind.bind_info = part_of(&b, 1000);
		CHECK_RETURNS(ibv_bind_mw(b.qp, mw, &bind), 0);
		wc = completion(&b, IBV_WC_SUCCESS);
		CHECK(wc.wr_id == 5 && wc.opcode == IBV_WC_BIND_MW);
		CHECK(mw->rkey != before && mw->rkey >> 8 == before >> 8);
	}
	write_through(&a, &b, mw->rkey, IBV_WC_SUCCESS);
	CHECK_RETURNS(ibv_dereg_mr(b.mr), EBUSY);
	bind.bind_info = part_of(&b, 0); /* unbinds */
	CHECK_RETURNS(ibv_bind_mw(b.qp, mw, &bind), 0);
	completion(&b, IBV_WC_SUCCESS);
	write_through(&a, &b, mw->rkey, IBV_WC_REM_ACCESS_ERR);
	begin_anew(&a, &b);
	write_through(&a, &b, b.mr->rkey, IBV_WC_REM_ACCESS_ERR); /* the region itself grants no access */
	CHECK_RETURNS(ibv_dealloc_mw(mw), 0);
	end_free(&a);
	end_free(&b);
}

static struct ibv_send_wr bind_wr(struct ibv_mw *mw, struct ibv_mw_bind_info info)
{
	return (struct ibv_send_wr){ .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
				     .bind_mw = { mw, ibv_inc_rkey(mw->rkey), info } };
}

static void bind2(struct end *b, struct ibv_mw *mw)
{
	struct ibv_send_wr wr = bind_wr(mw, part_of(b, 1000));
	uint32_t rkey = wr.bind_mw.rkey;

	wr.bind_mw.rkey ^= 0xabcdef00; /* the upper part of the key is ignored */
	CHECK_RETURNS(post(b, &wr), 0);
	CHECK(mw->rkey == rkey);
	CHECK(completion(b, IBV_WC_SUCCESS).opcode == IBV_WC_BIND_MW);
}

void case_windows2(void)
{
	struct end a, b;
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_send_wr invalidate = { .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_sge sge;
	struct ibv_wc wc;

	pair_up(&a, &b, IBV_QPT_RC, BINDABLE);
	bind2(&b, mw);
	write_through(&a, &b, mw->rkey, IBV_WC_SUCCESS);
	invalidate.invalidate_rkey = mw->rkey;
	CHECK_RETURNS(post(&b, &invalidate), 0);
	CHECK(completion(&b, IBV_WC_SUCCESS).opcode == IBV_WC_LOCAL_INV);
	write_through(&a, &b, mw->rkey, IBV_WC_REM_ACCESS_ERR);

	begin_anew(&a, &b);
	bind2(&b, mw);
	receive(&b, 3, 64);
	invalidate = request(&a, IBV_WR_SEND_WITH_INV, 8, &sge);
	invalidate.invalidate_rkey = mw->rkey;
	CHECK_RETURNS(post(&a, &invalidate), 0);
	completion(&a, IBV_WC_SUCCESS);
	wc = completion(&b, IBV_WC_SUCCESS);
	CHECK(wc.wc_flags == IBV_WC_WITH_INV && wc.invalidated_rkey == mw->rkey);
	write_through(&a, &b, mw->rkey, IBV_WC_REM_ACCESS_ERR);

	begin_anew(&a, &b);
	bind2(&b, mw);
	CHECK_RETURNS(ibv_dealloc_mw(mw), 0); /* whether bound or not */
	CHECK_RETURNS(ibv_dereg_mr(b.mr), 0);
	CHECK((b.mr = ibv_reg_mr(pd, b.memory, LENGTH, BINDABLE)));
	end_free(&a);
	end_free(&b);
}

/* ibv_wr_bind_mw, ibv_wr_local_inv. */
void case_windows_ex(void)
{
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 32, 32, 2, 2, 64 }, .pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV,
	};
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info;
	struct ibv_qp_ex *ex;
	struct end b, x;

	end_init(&x, IBV_QPT_RC, BINDABLE);
	b = x;
	b.cq = cq;
	CHECK((b.qp = ibv_create_qp_ex(context, &attr)));
	ex = ibv_qp_to_qp_ex(b.qp);
	to_init(b.qp, IBV_ACCESS_REMOTE_WRITE);
	to_rtr(b.qp, x.qp->qp_num);
	to_rts(b.qp); /* the peer is not connected, which binding a window does not need */
	info = part_of(&b, 10);
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(ex, mw, ibv_inc_rkey(mw->rkey) & 0xff, &info);
	ex->wr_id = 2;
	ibv_wr_local_inv(ex, ibv_inc_rkey(mw->rkey)); /* this way of posting ignores it */
	CHECK_RETURNS(ibv_wr_complete(ex), 0);
	CHECK(completion(&b, IBV_WC_SUCCESS).opcode == IBV_WC_BIND_MW);
	CHECK(completion(&b, IBV_WC_SUCCESS).opcode == IBV_WC_LOCAL_INV);
	ibv_wr_start(ex);
	info.mw_access_flags = 1u << 30;
	ibv_wr_bind_mw(ex, mw, mw->rkey, &info);
	CHECK_RETURNS(ibv_wr_complete(ex), EINVAL);
	CHECK_RETURNS(ibv_dealloc_mw(mw), 0);
	CHECK_RETURNS(ibv_destroy_qp(b.qp), 0);
	end_free(&x);
}

static void refused_at_once(struct end *b)
{
	struct ibv_mw *mw1 = ibv_alloc_mw(pd, IBV_MW_TYPE_1), *mw2 = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind bind = { .bind_info = part_of(b, 100) };
	struct ibv_pd *other = ibv_alloc_pd(context);
	struct ibv_mw *foreign = ibv_alloc_mw(other, IBV_MW_TYPE_1);
	uint32_t before = mw1->rkey;

	CHECK_NULL(ibv_alloc_mw(pd, 0), EINVAL);
	CHECK_NULL(ibv_alloc_mw(pd, 3), EINVAL);
	CHECK(ibv_bind_mw(b->qp, mw2, &bind) == EINVAL); /* type 2 windows are bound by post_send */
	CHECK(ibv_bind_mw(b->qp, foreign, &bind) == EPERM);
	bind.bind_info.mr = NULL;
	CHECK(ibv_bind_mw(b->qp, mw1, &bind) == EINVAL);
	bind.bind_info = part_of(b, 100);
	bind.bind_info.mw_access_flags = IBV_ACCESS_ON_DEMAND;
	CHECK(ibv_bind_mw(b->qp, mw1, &bind) == EINVAL);
	CHECK(mw1->rkey == before);
	CHECK_RETURNS(ibv_dealloc_pd(other), EBUSY);
	CHECK_RETURNS(ibv_dealloc_mw(foreign), 0);
	CHECK_RETURNS(ibv_dealloc_pd(other), 0);
	CHECK_RETURNS(ibv_dealloc_mw(mw1), 0);
	CHECK_RETURNS(ibv_dealloc_mw(mw2), 0);
}

void case_windows_refused(void)
{
	struct ibv_device_attr device;
	struct ibv_send_wr wr;
	struct ibv_mw *mw;
	struct end a, b;

	pair_up(&a, &b, IBV_QPT_RC, BINDABLE);
	refused_at_once(&b);
	CHECK_RETURNS(ibv_query_device(context, &device), 0);
	CHECK(device.max_mw > 0 && (device.device_cap_flags & IBV_DEVICE_MEM_WINDOW) &&
	      (device.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B));
	/* Outside the region: only urdmad checks. */
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	wr = bind_wr(mw, part_of(&b, LENGTH));
	CHECK_RETURNS(post(&b, &wr), 0);
	CHECK(completion(&b, IBV_WC_MW_BIND_ERR).opcode == IBV_WC_BIND_MW);
	CHECK_RETURNS(ibv_dealloc_mw(mw), 0);
	end_free(&a);
	end_free(&b);
}
