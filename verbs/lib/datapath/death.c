/*
 * death.c - what a program sees when urdmad ends: the same as when a device fails. Every outstanding work
 * request completes with IBV_WC_WR_FLUSH_ERR, armed queues deliver their event, the context reports
 * IBV_EVENT_DEVICE_FATAL, and posting returns EIO. The rings outlive urdmad. A request is outstanding if
 * its completion was not polled and it did not complete unsignaled (queue.c).
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

static uint32_t flushed_opcode(uint32_t opcode)
{
	const struct urdma_operation *op = urdma_operation(opcode);

	return op ? op->wc : (uint32_t)IBV_WC_SEND;
}

/* Returns whether a request is outstanding; if out is not NULL, flushes it. The caller holds cq->lock, and
 * the ring is empty. */
static bool next_of_all(struct urdma_cq *cq, struct urdma_abi_cqe *out)
{
	struct urdma_lost lost;
	struct urdma_qp *qp;

	for (qp = cq->senders; qp; qp = qp->next_sender)
		if (urdma_queue_lost(&qp->sq, out != NULL, &lost)) {
			if (out)
				fill_flushed(qp, lost.wr_id, flushed_opcode(lost.opcode), out);
			return true;
		}
	for (qp = cq->receivers; qp; qp = qp->next_receiver)
		if (urdma_queue_lost(&qp->rq, out != NULL, &lost)) {
			if (out)
				fill_flushed(qp, lost.wr_id, IBV_WC_RECV, out);
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

/* Disarms the queue, as urdmad would have done, so that each arming leads to one event. */
struct urdma_cq *urdma_flush_event(struct urdma_channel *channel)
{
	struct urdma_cq *cq;

	if (urdma_client_state(channel->client) != URDMA_CLIENT_GONE)
		return NULL;
	pthread_mutex_lock(&channel->lock);
	for (cq = channel->cqs; cq; cq = cq->next_in_channel)
		if (__atomic_load_n(&cq->ring->arm, __ATOMIC_ACQUIRE) && has_something(cq))
			break;
	if (cq) {
		__atomic_store_n(&cq->ring->arm, 0, __ATOMIC_SEQ_CST);
		urdma_events_deliver(&cq->completions);
	}
	pthread_mutex_unlock(&channel->lock);
	return cq;
}
