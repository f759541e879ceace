/* lost_wakeup.c - arms and waits: completions before the arming wake nobody. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;
	struct ibv_cq *cq;
	void *unused;

	connected(&a, &b, PLAN);
	must(!receive(&a, part(&a, 0, 64)), "ibv_post_recv");
	must(!post(&b, NULL, IBV_WR_SEND, IBV_SEND_SIGNALED, part(&b, 0, 64)) && !polled(&b), "ibv_post_send");
	ibv_req_notify_cq(a.cq, 0);
	ibv_get_cq_event(a.channel, &cq, &unused);
	return 0;
}
