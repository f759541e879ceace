/*
 * death.c - what urdmad's end looks like to a program: what a device's does.
 * Every outstanding work request completes with IBV_WC_WR_FLUSH_ERR, armed
 * queues raise their event, the context reports IBV_EVENT_DEVICE_FATAL, and
 * posting answers EIO. The rings outlive urdmad: they say what is outstanding.
 */
#include <string.h>

#include "objects.h"

static void fill_flushed(const struct urdma_qp *qp, uint64_t wr_id, uint32_t opcode, struct urdma_abi_cqe *out)
{
	memset(out, 0, sizeof(*out));
	out->wr_id = wr_id;
	out->status = IBV_WC_WR_FLUSH_ERR;
	out->opcode = opcode;
	out->qp_num = qp->ex.qp_base.qp_num;
}

/* The oldest index that neither urdmad completed nor we flushed. Whichever is
 * ahead counts; they are never half the index range apart. */
static uint32_t oldest(const struct urdma_queue *q)
{
	uint32_t cons = __atomic_load_n(q->shared_cons, __ATOMIC_ACQUIRE);

	return (int32_t)(q->flushed - cons) > 0 ? q->flushed : cons;
}

/* The slot of the next request to flush, or NULL; forgets it if take. What was
 * published counts: a thread that posts at this moment is served next time. */
static const void *next_flushed(struct urdma_queue *q, bool take)
{
	uint32_t at = oldest(q), prod = __atomic_load_n(q->shared_prod, __ATOMIC_ACQUIRE);

	if ((int32_t)(prod - at) <= 0)
		return NULL;
	if (take)
		q->flushed = at + 1;
	return q->slots + (size_t)(at & q->mask) * q->stride;
}

static uint32_t flushed_opcode(const struct urdma_abi_sqe *slot)
{
	const struct urdma_opcode *op = urdma_opcode(slot->opcode);

	return op ? op->wc : (uint32_t)IBV_WC_SEND;
}

/* With cq->lock held. */
static bool next_of_all(struct urdma_cq *cq, struct urdma_abi_cqe *out)
{
	const struct urdma_abi_sqe *sqe;
	const struct urdma_abi_rqe *rqe;
	struct urdma_qp *qp;

	for (qp = cq->senders; qp; qp = qp->next_sender) {
		sqe = next_flushed(&qp->sq, out != NULL);
		if (sqe && out)
			fill_flushed(qp, sqe->wr_id, flushed_opcode(sqe), out);
		if (sqe)
			return true;
	}
	for (qp = cq->receivers; qp; qp = qp->next_receiver) {
		rqe = next_flushed(&qp->rq, out != NULL);
		if (rqe && out)
			fill_flushed(qp, rqe->wr_id, IBV_WC_RECV, out);
		if (rqe)
			return true;
	}
	return false;
}

bool urdma_flush_take(struct urdma_cq *cq, struct urdma_abi_cqe *out)
{
	return urdma_client_state(cq->client) == URDMA_CLIENT_GONE && next_of_all(cq, out);
}

static bool has_something(struct urdma_cq *cq)
{
	int taken = urdma_lock_take(&cq->lock);
	bool found = cq->cons != __atomic_load_n(&cq->ring->prod, __ATOMIC_ACQUIRE) || next_of_all(cq, NULL);

	urdma_lock_drop(&cq->lock, taken);
	return found;
}

/* Disarms, as urdmad would have, so that each arming yields one event. */
struct urdma_cq *urdma_flush_event(struct urdma_channel *channel)
{
	struct urdma_client *client = urdma_context_client(channel->channel.context);
	struct urdma_cq *cq;

	if (urdma_client_state(client) != URDMA_CLIENT_GONE)
		return NULL;
	pthread_mutex_lock(&channel->lock);
	for (cq = channel->cqs; cq; cq = cq->next_in_channel)
		if (__atomic_load_n(&cq->ring->arm, __ATOMIC_ACQUIRE) && has_something(cq))
			break;
	if (cq) {
		__atomic_store_n(&cq->ring->arm, 0, __ATOMIC_SEQ_CST);
		pthread_mutex_lock(&cq->ex.mutex);
		cq->comp_events++;
		pthread_mutex_unlock(&cq->ex.mutex);
	}
	pthread_mutex_unlock(&channel->lock);
	return cq;
}
