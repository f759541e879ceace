/* offset.c - gives an offset where remote_addr is an address. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;

	connected(&a, &b, PLAN);
	b.memory = (uint8_t *)128;
	must(!post(&a, &b, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, part(&a, 0, 64)), "ibv_post_send");
	return polled(&a) == IBV_WC_SUCCESS;
}
