/* queue.c - the client's side of a send or receive ring. */
#include <errno.h>

#include "objects.h"

/* The consumer's index is loaded only when the last known one says full. */
void *urdma_queue_slot(struct urdma_queue *q)
{
	if (q->prod - q->cons >= q->depth) {
		q->cons = __atomic_load_n(q->shared_cons, __ATOMIC_ACQUIRE);
		if (q->prod - q->cons >= q->depth)
			return NULL;
	}
	return q->slots + (size_t)(q->prod & q->mask) * q->stride;
}

/* Release: urdmad's acquiring load of prod sees the slots before it. */
void urdma_queue_publish(struct urdma_queue *q)
{
	__atomic_store_n(q->shared_prod, q->prod, __ATOMIC_RELEASE);
}

static bool sends_in(enum ibv_qp_state state)
{
	return state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE || state == IBV_QPS_ERR;
}

/* A connection that rdma_cm or the peer made is known to urdmad first: ask it
 * before refusing. */
int urdma_qp_may_send(struct urdma_qp *qp)
{
	if (!urdma_client_alive(qp->client))
		return EIO;
	if (sends_in(qp->ex.qp_base.state) || (urdma_qp_refresh(qp) == 0 && sends_in(qp->ex.qp_base.state)))
		return 0;
	return urdma_client_alive(qp->client) ? EINVAL : EIO;
}

int urdma_qp_may_recv(struct urdma_qp *qp)
{
	if (!urdma_client_alive(qp->client))
		return EIO;
	if (qp->ex.qp_base.state != IBV_QPS_RESET ||
	    (urdma_qp_refresh(qp) == 0 && qp->ex.qp_base.state != IBV_QPS_RESET))
		return 0;
	return urdma_client_alive(qp->client) ? EINVAL : EIO;
}
