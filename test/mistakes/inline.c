/* inline.c - sends more inline than it has asked for. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;

	connected(&a, &b, PLAN);
	post(&a, &b, IBV_WR_RDMA_WRITE, IBV_SEND_INLINE | IBV_SEND_SIGNALED, part(&a, 0, 32768));
	return 0;
}
