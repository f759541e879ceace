/*
 * warn_rings.h - functions shared by the files warn_*.c. Posted requests are read from the rings, where
 * they stay until their completion is polled. If another thread posts to the same queue meanwhile, a
 * request may be misread; the only harm is a wrong warning.
 */
#ifndef URDMA_WARN_RINGS_H
#define URDMA_WARN_RINGS_H

#include "warn.h"

static inline void *slot_at(const struct urdma_queue *q, uint32_t index)
{
	return q->slots + (size_t)(index & q->mask) * q->stride;
}

static inline uint32_t posted(const struct urdma_queue *q)
{
	return URDMA_LOAD(q->prod);
}

/* Returns the oldest request whose completion may still be polled. */
static inline uint32_t oldest(const struct urdma_queue *q)
{
	uint32_t polled = __atomic_load_n(&q->polled, __ATOMIC_ACQUIRE), cons = URDMA_LOAD(q->cons);

	return polled - cons <= posted(q) - cons ? polled : cons;
}

/* Returns the oldest request that urdmad may still carry out. */
static inline uint32_t undone(const struct urdma_queue *q)
{
	uint32_t done = __atomic_load_n(q->shared_cons, __ATOMIC_ACQUIRE);

	return posted(q) - done <= q->depth ? done : posted(q);
}

static inline bool signaled(const struct urdma_qp *qp, uint32_t index)
{
	return qp->sq_sig_all || (((const struct urdma_abi_sqe *)slot_at(&qp->sq, index))->flags & IBV_SEND_SIGNALED);
}

static inline bool works_in(uint32_t state)
{
	return state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_RTR;
}

/* Asks urdmad whether the queue pair still works. */
static inline bool works(struct urdma_qp *qp)
{
	struct urdma_abi_query_qp_response response;

	return urdma_client_alive(qp->client) && urdma_qp_ask(qp, &response) == 0 && works_in(response.attr.qp_state);
}

/* Warns if a child of fork(2) uses its parent's object. call is the function's name. */
static inline bool in_child(struct urdma_client *client, const char *call)
{
	if (urdma_client_state(client) != URDMA_CLIENT_FORKED)
		return false;
	urdma_warn(NULL, 0, URDMA_ABI_PITFALL_FORKED, "%s", call);
	return true;
}

/* Enables the checks of polls and armings on a context. */
void urdma_warn_watch_cq(struct ibv_context *context);
/* Takes cq->lock; the result is for urdma_lock_drop. Between ibv_start_poll and ibv_end_poll this thread
 * holds the lock already. */
static inline int urdma_warn_lock(struct urdma_cq *cq)
{
	return URDMA_LOAD(cq->poller) == pthread_self() ? 0 : urdma_lock_take(&cq->lock);
}

/* Checks whether more completions may come than the queue has entries. */
void urdma_warn_room(struct urdma_cq *cq, uint32_t qpn);
/* Work requests were posted, on any queue pair. */
void urdma_warn_counts(uint32_t posts);
/* Nothing has completed on the queue: checks whether a send waits for the peer's receive. */
void urdma_warn_stuck(struct urdma_cq *cq);
/* The first receives were posted. */
void urdma_warn_ready(struct urdma_qp *qp);

#endif /* URDMA_WARN_RINGS_H */
