/* registers.c - registers its memory again for each message. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;
	struct ibv_sge sge;
	struct ibv_mr *mr;

	connected(&a, &b, PLAN);
	for (int i = 0; i < 100; i++) {
		must((mr = ibv_reg_mr(pd, a.memory, 64, 0)) != NULL, "ibv_reg_mr");
		sge = (struct ibv_sge){ (uintptr_t)a.memory, 64, mr->lkey };
		must(!post(&a, &b, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, sge), "ibv_post_send");
		must(polled(&a) == IBV_WC_SUCCESS && !ibv_dereg_mr(mr), "Write");
	}
	return 0;
}
