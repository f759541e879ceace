/* uc.c - queue pairs of type UC. */
#include "objects.h"

#define UC_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* Sends and Writes of all sizes; messages without a receive are dropped. */
void case_uc(void)
{
	struct end a, b;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;

	pair_up(&a, &b, IBV_QPT_UC, UC_ACCESS);
	for (uint32_t length = 0; length <= LENGTH; length = length * 3 + 1) {
		memset(a.memory, (int)length, LENGTH);
		receive(&b, length, LENGTH);
		wr = request(&a, IBV_WR_SEND_WITH_IMM, length, &sge);
		wr.imm_data = htobe32(length);
		CHECK_RETURNS(post(&a, &wr), 0);
		completion(&a, IBV_WC_SUCCESS);
		wc = completion(&b, IBV_WC_SUCCESS);
		CHECK(wc.wr_id == length && wc.byte_len == length && wc.imm_data == htobe32(length));
		CHECK(!length || (b.memory[0] == (uint8_t)length && b.memory[length - 1] == (uint8_t)length));
	}
	wr = write_to(&a, b.mr->rkey ^ 0x10000, (uintptr_t)b.memory, 100, &sge);
	CHECK_RETURNS(post(&a, &wr), 0);
	completion(&a, IBV_WC_SUCCESS);
	memset(b.memory, 0, LENGTH);
	wr = write_to(&a, b.mr->rkey, (uintptr_t)b.memory, LENGTH, &sge);
	CHECK_RETURNS(post(&a, &wr), 0);
	completion(&a, IBV_WC_SUCCESS);
	CHECK(!memcmp(a.memory, b.memory, LENGTH));
	nothing(&b);
	end_free(&a);
	end_free(&b);
}

/* Operations that need a response are refused, and so are attributes of other types. */
void case_uc_refused(void)
{
	struct ibv_qp_init_attr_ex ex = { .qp_type = IBV_QPT_UC, .cap = { 4, 4, 1, 1, 0 }, .pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .send_ops_flags = IBV_QP_EX_WITH_RDMA_READ };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = 14 };
	struct end a, b;
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	end_init(&a, IBV_QPT_UC, UC_ACCESS);
	end_init(&b, IBV_QPT_UC, UC_ACCESS);
	ex.send_cq = ex.recv_cq = a.cq;
	CHECK_NULL(ibv_create_qp_ex(context, &ex), EOPNOTSUPP);
	to_rtr(a.qp, b.qp->qp_num);
	CHECK_RETURNS(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT), EINVAL);
	to_rts(a.qp);
	wr = write_to(&a, b.mr->rkey, (uintptr_t)b.memory, 8, &sge);
	for (unsigned int i = 0; i < 4; i++) {
		wr.opcode = (enum ibv_wr_opcode[]){ IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
						    IBV_WR_SEND_WITH_INV }[i];
		CHECK(post(&a, &wr) == EINVAL);
	}
	end_free(&a);
	end_free(&b);
}
