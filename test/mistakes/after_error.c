/* after_error.c - counts completions, and never looks at their status. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;

	connected(&a, &b, PLAN);
	for (int i = 0; i < 100; i++) {
		must(!post(&a, NULL, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, part(&a, 0, 64)), "ibv_post_send");
		polled(&a);
	}
	return 0;
}
