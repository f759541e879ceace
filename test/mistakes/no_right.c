/* no_right.c - registers memory without remote access, and lets the peer write to it. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;
	struct plan p = PLAN;

	p.access = IBV_ACCESS_LOCAL_WRITE;
	connected(&a, &b, p);
	must(!post(&a, &b, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, part(&a, 0, 64)), "ibv_post_send");
	return polled(&a) == IBV_WC_SUCCESS;
}
