/* queue.c - the client's side of a send or receive ring, and the doorbell. */
#include <errno.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/*
 * The order of urdma_abi.h: index published, bit, summary, then the look at
 * sleeping. Both read-modify-writes are sequentially consistent, as is
 * urdmad's store of sleeping before its last look at summary, so one of the
 * two sees the other.
 */
void urdma_ring_doorbell(struct urdma_qp *qp)
{
	struct urdma_abi_doorbells *bells = qp->bells;
	uint32_t word = qp->doorbell / 64;
	uint8_t byte = 1;

	__atomic_fetch_or(&bells->bits[word], UINT64_C(1) << (qp->doorbell % 64), __ATOMIC_SEQ_CST);
	__atomic_fetch_or(&bells->summary, UINT64_C(1) << word, __ATOMIC_SEQ_CST);
	/* A full socket means that kicks enough are on their way. Raw, because
	 * send(2) is a cancellation point and posting must not be one. */
	if (__atomic_load_n(&bells->sleeping, __ATOMIC_SEQ_CST))
		syscall(SYS_sendto, qp->client->kick, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
}

/* Called without the queue's lock: urdmad may share this core, and the peer
 * can't go on before urdmad has run. */
void urdma_announce_send(struct urdma_qp *qp)
{
	urdma_ring_doorbell(qp);
	if (__atomic_load_n(&qp->bells->yield_post, __ATOMIC_RELAXED))
		sched_yield();
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
