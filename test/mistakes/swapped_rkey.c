/* swapped_rkey.c - sends the rkey through htonl, and the peer does not convert it back. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;

	connected(&a, &b, PLAN);
	b.mr->rkey = __builtin_bswap32(b.mr->rkey);
	must(!post(&a, &b, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, part(&a, 0, 64)), "ibv_post_send");
	return polled(&a) == IBV_WC_SUCCESS;
}
