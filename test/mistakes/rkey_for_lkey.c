/* rkey_for_lkey.c - uses a key that belongs to nothing as lkey. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;
	struct ibv_sge sge;

	connected(&a, &b, PLAN);
	sge = part(&a, 0, 64);
	sge.lkey = 7;
	must(!post(&a, &b, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, sge), "ibv_post_send");
	return polled(&a) == IBV_WC_SUCCESS;
}
