/* unacknowledged.c - gets an event, and destroys the completion queue without acknowledging it. */
#include "mistakes.h"

int main(void)
{
	struct side a, b;
	struct ibv_cq *cq;
	void *unused;

	connected(&a, &b, PLAN);
	ibv_req_notify_cq(a.cq, 0);
	must(!post(&a, &b, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, part(&a, 0, 64)), "ibv_post_send");
	must(!ibv_get_cq_event(a.channel, &cq, &unused) && !polled(&a), "ibv_get_cq_event");
	ibv_destroy_qp(a.qp);
	ibv_destroy_cq(a.cq);
	return 0;
}
