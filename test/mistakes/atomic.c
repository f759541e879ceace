/* atomic.c - adds to a counter at an address that is not a multiple of 8. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;

	connected(&a, &b, PLAN);
	b.memory += 4;
	must(!post(&a, &b, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_SEND_SIGNALED, part(&a, 0, 8)), "ibv_post_send");
	return 0;
}
