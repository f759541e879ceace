/* not_armed.c - arms once, and waits for every event. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;
	struct ibv_cq *cq;
	void *unused;

	connected(&a, &b, PLAN);
	ibv_req_notify_cq(a.cq, 0);
	for (int i = 0; i < 2; i++) {
		must(!post(&a, &b, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, part(&a, 0, 64)), "ibv_post_send");
		must(!ibv_get_cq_event(a.channel, &cq, &unused) && !polled(&a), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	}
	return 0;
}
