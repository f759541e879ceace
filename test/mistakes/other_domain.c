/* other_domain.c - has two protection domains, and registers its memory in the wrong one. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;
	struct ibv_pd *other;

	connected(&a, &b, PLAN);
	must((other = ibv_alloc_pd(context)) && (a.mr = ibv_reg_mr(other, a.memory, BYTES, RIGHTS)), "ibv_reg_mr");
	must(!post(&a, &b, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, part(&a, 0, 64)), "ibv_post_send");
	return polled(&a) == IBV_WC_SUCCESS;
}
