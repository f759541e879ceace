/* asleep.c - what never_ready.c does, and waits for the event of the completion. */
#include "../../../test/mistakes/mistakes.h"

int main(void)
{
	struct side a, b;
	struct ibv_cq *cq;
	void *unused;

	connected(&a, &b, PLAN);
	must(!ibv_req_notify_cq(a.cq, 0), "ibv_req_notify_cq");
	must(!post(&a, NULL, IBV_WR_SEND, IBV_SEND_SIGNALED, part(&a, 0, 64)), "ibv_post_send");
	return ibv_get_cq_event(a.channel, &cq, &unused);
}
