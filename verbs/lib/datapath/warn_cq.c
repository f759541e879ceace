/* warn_cq.c - mistakes with completion queues and channels, see warn.h. */
#include "warn_rings.h"

/* waits without a poll after the arming that are allowed: at first there may be no work to poll for */
#define HABIT 2u

/* Returns how many completions one queue pair may still put on cq. */
static uint32_t may_complete(const struct urdma_qp *qp, bool sends)
{
	const struct urdma_queue *q = sends ? &qp->sq : &qp->rq;
	uint32_t n = 0;

	if (!q->depth)
		return 0;
	for (uint32_t i = oldest(q); i != posted(q); i++)
		n += !sends || signaled(qp, i);
	return n;
}

/* Returns how many completions would come on cq if all queues were full. */
static uint32_t needed_entries(const struct urdma_cq *cq)
{
	uint32_t n = 0;

	for (const struct urdma_qp *qp = cq->senders; qp; qp = qp->next_sender)
		n += qp->sq.depth;
	for (const struct urdma_qp *qp = cq->receivers; qp; qp = qp->next_receiver)
		n += qp->rq.depth;
	return n;
}

void urdma_warn_room(struct urdma_cq *cq, uint32_t qpn)
{
	uint32_t n = 0, entries;
	int taken = urdma_warn_lock(cq);

	entries = (uint32_t)cq->ex.cqe;
	if (!cq->ignore_overrun && needed_entries(cq) > entries) {
		for (const struct urdma_qp *qp = cq->senders; qp; qp = qp->next_sender)
			n += may_complete(qp, true);
		for (const struct urdma_qp *qp = cq->receivers; qp; qp = qp->next_receiver)
			n += may_complete(qp, false);
	}
	urdma_lock_drop(&cq->lock, taken);
	if (n > entries)
		urdma_warn(cq->client, qpn, URDMA_ABI_PITFALL_SMALL_CQ,
			   "%u completions may come before the next poll, and the completion queue has %u entries", n, entries);
}

void urdma_warn_failed(struct urdma_cq *cq, uint32_t qp_num, uint32_t status)
{
	struct urdma_qp *qp;

	for (qp = cq->senders; qp && qp->ex.qp_base.qp_num != qp_num; qp = qp->next_sender)
		;
	for (qp = qp ? qp : cq->receivers; qp && qp->ex.qp_base.qp_num != qp_num; qp = qp->next_receiver)
		;
	if (qp && !qp->error)
		qp->error = status;
}

static int (*poll)(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);

static int poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct urdma_cq *cq = urdma_cq_of(ibv);
	int n, taken;

	if (in_child(cq->client, "ibv_poll_cq"))
		return poll(ibv, num_entries, wc);
	n = poll(ibv, num_entries, wc);
	URDMA_STORE(cq->unpolled, 0);
	if (n == 0)
		urdma_warn_stuck(cq);
	for (int i = 0; i < n; i++) {
		if (wc[i].status == IBV_WC_SUCCESS)
			continue;
		taken = urdma_warn_lock(cq);
		urdma_warn_failed(cq, wc[i].qp_num, wc[i].status);
		urdma_lock_drop(&cq->lock, taken);
	}
	return n;
}

/* ibv_req_notify_cq's implementation, in the folder above */
static int (*notify)(struct ibv_cq *cq, int solicited_only);

/* Between ibv_start_poll and ibv_end_poll the program is still polling. */
static int req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct urdma_cq *cq = urdma_cq_of(ibv);
	bool polling = URDMA_LOAD(cq->poller) == pthread_self();
	bool waiting = __atomic_load_n(&cq->ring->prod, __ATOMIC_ACQUIRE) != URDMA_LOAD(cq->cons);

	URDMA_STORE(cq->unpolled, polling ? 0 : waiting ? 2 : 1);
	URDMA_STORE(cq->awaits, true);
	return notify(ibv, solicited_only);
}

/* Early waits without a poll are not counted as a mistake: there may be nothing to poll yet. */
static bool forgets_to_poll(struct urdma_cq *cq)
{
	uint32_t unpolled = URDMA_LOAD(cq->unpolled);

	if (unpolled == 1)
		URDMA_STORE(cq->unpolled, 0); /* each arming counts once */
	return URDMA_LOAD(cq->awaits) && (unpolled == 2 || (unpolled == 1 && ++cq->habit > HABIT));
}

void urdma_warn_waits(struct urdma_channel *channel)
{
	bool armed = false, any = false;
	struct urdma_cq *cq, *lost = NULL;
	bool missed = false;

	pthread_mutex_lock(&channel->lock);
	for (cq = channel->cqs; cq; cq = cq->next_in_channel) {
		any = true;
		armed |= URDMA_LOAD(cq->awaits);
		if (forgets_to_poll(cq)) {
			lost = cq;
			missed = URDMA_LOAD(cq->unpolled) == 2;
		}
	}
	pthread_mutex_unlock(&channel->lock);
	if (lost)
		urdma_warn(channel->client, 0, URDMA_ABI_PITFALL_LOST_WAKEUP,
			   missed ? "completions were there before ibv_req_notify_cq, and nobody has polled them"
				  : "ibv_req_notify_cq, then ibv_get_cq_event, again and again");
	if (any && !armed)
		urdma_warn(channel->client, 0, URDMA_ABI_PITFALL_NOT_ARMED,
			"of the queues of the channel none is armed: this call waits for ever");
}

/* Wraps the functions in the tables, which may be the ones of strict.c. */
void urdma_warn_watch_cq(struct ibv_context *context)
{
	notify = context->ops.req_notify_cq;
	poll = context->ops.poll_cq;
	context->ops.poll_cq = poll_cq;
	context->ops.req_notify_cq = req_notify_cq;
}
