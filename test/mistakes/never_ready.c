/* never_ready.c - the peer never posts a receive, and rnr_retry is 7. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;

	connected(&a, &b, PLAN);
	must(!post(&a, NULL, IBV_WR_SEND, IBV_SEND_SIGNALED, part(&a, 0, 64)), "ibv_post_send");
	return polled(&a) == IBV_WC_SUCCESS;
}
