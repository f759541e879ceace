/* warn_wait.c - sends that wait for the peer to post a receive, see warn.h. */
#include <poll.h>
#include <time.h>

#include "warn_rings.h"

#define PATIENCE 10000000000ull /* ns: longer than a peer waits for a processor on a busy machine */
#define LOOK 1000              /* ms: time between two checks while a program waits for an event */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool takes_receive(uint32_t opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_SEND_WITH_INV ||
		opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* Returns whether the oldest send has waited too long; true once for each queue pair. */
static bool stuck(struct urdma_qp *qp, uint64_t now)
{
	uint32_t first = qp->sq.depth ? undone(&qp->sq) : 0;

	if (!qp->sq.depth || qp->datagram || qp->since == UINT64_MAX || qp->ex.qp_base.state == IBV_QPS_SQD)
		return false;
	if (first == posted(&qp->sq) || first != qp->waiting || !qp->since) {
		qp->waiting = first;
		qp->since = first == posted(&qp->sq) ? 0 : now;
		return false;
	}
	if (now - qp->since < PATIENCE || !takes_receive(((const struct urdma_abi_sqe *)slot_at(&qp->sq, first))->opcode))
		return false;
	qp->since = UINT64_MAX;
	return true;
}

/* Returns the number of sends on a queue pair of cq whose first send is stuck, and the queue pair's
 * number; 0 if none is stuck. */
static uint32_t stuck_sends(struct urdma_cq *cq, uint32_t *qpn)
{
	int taken = urdma_warn_lock(cq);
	uint64_t now = now_ns();
	uint32_t n = 0;
	struct urdma_qp *qp;

	for (qp = cq->senders; qp && !stuck(qp, now); qp = qp->next_sender)
		;
	if (qp) {
		n = posted(&qp->sq) - undone(&qp->sq);
		*qpn = qp->ex.qp_base.qp_num;
	}
	urdma_lock_drop(&cq->lock, taken);
	return n;
}

static void tell(struct urdma_client *client, uint32_t qpn, uint32_t sends)
{
	urdma_warn(client, qpn, URDMA_ABI_PITFALL_NO_RECEIVE, "of %u sends none has ended for %llu s", sends,
		PATIENCE / 1000000000u);
}

void urdma_warn_stuck(struct urdma_cq *cq)
{
	uint32_t qpn, n = stuck_sends(cq, &qpn);

	if (n)
		tell(cq->client, qpn, n);
}

void urdma_warn_sleeps(struct urdma_channel *channel)
{
	struct pollfd fd = { .fd = channel->channel.fd, .events = POLLIN };
	uint32_t qpn, n;

	while (poll(&fd, 1, LOOK) == 0) {
		n = 0;
		pthread_mutex_lock(&channel->lock);
		for (struct urdma_cq *cq = channel->cqs; cq && !n; cq = cq->next_in_channel)
			n = stuck_sends(cq, &qpn);
		pthread_mutex_unlock(&channel->lock);
		if (n)
			tell(channel->client, qpn, n);
	}
}
