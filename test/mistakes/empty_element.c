/* empty_element.c - a message without data has one element of no bytes. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;

	connected(&a, &b, PLAN);
	must(!post(&a, &b, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, part(&a, 0, 0)), "ibv_post_send");
	return 0;
}
