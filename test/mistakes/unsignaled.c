/* unsignaled.c - no send asks for a completion. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;

	connected(&a, &b, PLAN);
	for (int i = 0; i < 100; i++)
		while (post(&a, &b, IBV_WR_RDMA_WRITE, 0, part(&a, 0, 64))) /* full: surely it drains soon */
			;
	return 0;
}
