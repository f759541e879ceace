/* reads.c - has more Reads outstanding than its peer serves. */
#include "mistakes.h"

int main(void)
{
	struct side a = side_new(PLAN), b = side_new(PLAN);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .max_rd_atomic = 4, .sq_psn = 4711, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };

	to_init(&a);
	to_init(&b);
	to_rtr(&a, b.qp->qp_num, 4711);
	to_rtr(&b, a.qp->qp_num, 4711); /* with a max_dest_rd_atomic of 1 */
	to_rts(&b, 4711, 14, 7, 7);
	must(!ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
	for (int i = 0; i < 4; i++)
		must(!post(&a, &b, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, part(&a, 64 * (size_t)i, 64)), "ibv_post_send");
	for (int i = 0; i < 4; i++)
		polled(&a);
	return ibv_destroy_qp(a.qp);
}
