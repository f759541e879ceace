/* unread.c - posts with a wrong rkey and never polls. */
#include "mistakes.h"

int main(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct side a, b;

	connected(&a, &b, PLAN);
	must(!post(&a, NULL, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, part(&a, 0, 64)), "ibv_post_send");
	do
		must(!ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
	while (attr.qp_state != IBV_QPS_ERR);
	ibv_destroy_qp(a.qp);
	return 0;
}
