/* beyond.c - sends more than the region has. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;

	connected(&a, &b, PLAN);
	must(!post(&a, &b, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, part(&a, BYTES - 32, 64)), "ibv_post_send");
	return polled(&a) == IBV_WC_SUCCESS;
}
