/* full.c - posts without end, and never polls. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;
	struct plan p = PLAN;

	p.entries = 4096;
	connected(&a, &b, p);
	while (!post(&a, &b, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, part(&a, 0, 64)))
		;
	return 0;
}
