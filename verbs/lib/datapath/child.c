/*
 * child.c - the parent's objects in a child after fork(2). They belong to the parent's session, and calls
 * on them return EIO; destroying them frees the child's copy. Their locks are initialised again, because
 * threads of the parent may have held them.
 */
#include "objects.h"

static void free_cq(struct urdma_cq *cq)
{
	cq->lock.word = 0;
	urdma_events_forked(&cq->completions);
	urdma_events_forked(&cq->async);
	if (cq->ex.channel)
		pthread_mutex_init(&urdma_channel_of(cq->ex.channel)->lock, NULL);
}

static void free_qp(struct urdma_qp *qp)
{
	qp->sq.lock.word = qp->rq.lock.word = 0;
	urdma_events_forked(&qp->async);
}

static void free_srq(struct urdma_srq *srq)
{
	srq->queue.lock.word = 0;
	urdma_events_forked(&srq->async);
}

void urdma_objects_forked(struct urdma_client *client)
{
	struct urdma_handle *h;

	for (size_t i = 0; i < URDMA_HANDLE_BUCKETS; i++)
		for (h = client->handles[i]; h; h = h->next) {
			if (h->kind == URDMA_KIND_CQ)
				free_cq(h->object);
			else if (h->kind == URDMA_KIND_QP)
				free_qp(h->object);
			else if (h->kind == URDMA_KIND_SRQ)
				free_srq(h->object);
		}
}
