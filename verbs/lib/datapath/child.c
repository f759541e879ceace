/*
 * child.c - the parent's objects in a child after fork(). They belong to the
 * parent's connection and answer EIO; destroying them frees the child's copy.
 * Threads that don't exist here may have held their locks.
 */
#include "objects.h"

static void free_cq(struct urdma_cq *cq)
{
	cq->lock.word = 0;
	cq->comp_events = cq->ex.comp_events_completed;
	cq->async_events = cq->ex.async_events_completed;
	pthread_mutex_init(&cq->ex.mutex, NULL);
	pthread_cond_init(&cq->ex.cond, NULL);
	if (cq->ex.channel)
		pthread_mutex_init(&urdma_channel_of(cq->ex.channel)->lock, NULL);
}

static void free_qp(struct urdma_qp *qp)
{
	qp->sq.lock.word = qp->rq.lock.word = 0;
	qp->async_events = qp->ex.qp_base.events_completed;
	pthread_mutex_init(&qp->ex.qp_base.mutex, NULL);
	pthread_cond_init(&qp->ex.qp_base.cond, NULL);
}

static void free_srq(struct urdma_srq *srq)
{
	srq->queue.lock.word = 0;
	srq->async_events = srq->srq.events_completed;
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
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
