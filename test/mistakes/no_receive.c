/* no_receive.c - the peer posts no receive, and the sender retries for a short time only. */
#include "mistakes.h"

int main(void)
{
	struct side a = side_new(PLAN), b = side_new(PLAN);

	to_init(&a);
	to_init(&b);
	to_rtr(&a, b.qp->qp_num, 4711);
	to_rtr(&b, a.qp->qp_num, 4711);
	to_rts(&a, 4711, 14, 7, 1);
	to_rts(&b, 4711, 14, 7, 1);
	must(!post(&a, NULL, IBV_WR_SEND, IBV_SEND_SIGNALED, part(&a, 0, 64)), "ibv_post_send");
	return polled(&a) == IBV_WC_SUCCESS;
}
