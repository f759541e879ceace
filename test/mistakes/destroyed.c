/* destroyed.c - ends while its message is under way: the peer has posted no receive yet. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;

	connected(&a, &b, PLAN);
	must(!post(&a, NULL, IBV_WR_SEND, IBV_SEND_SIGNALED, part(&a, 0, 64)), "ibv_post_send");
	ibv_destroy_qp(a.qp);
	return 0;
}
