/*
 * post.c - ibv_post_send and ibv_post_recv: check the request, write a slot, publish it, ring the
 * doorbell.
 *
 * On failure they return an errno value and set *bad_wr to the failed request; requests before it are
 * posted. EINVAL: the request is malformed or not allowed in the queue pair's state. ENOMEM: the queue is
 * full. EOPNOTSUPP: urdmad does not support the operation. EIO: urdmad has ended.
 */
#include <errno.h>
#include <string.h>

#include "objects.h"

#define SEND_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

static uint64_t total_length(const struct ibv_sge *sge, int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += sge[i].length;
	return sum;
}

static int check_send(const struct urdma_qp *qp, const struct ibv_send_wr *wr, const struct urdma_operation *op)
{
	uint64_t length;

	if (!op)
		return EINVAL;
	if (!op->supported)
		return EOPNOTSUPP;
	if (qp->ex.qp_base.qp_type == IBV_QPT_XRC_SEND && wr->opcode == IBV_WR_SEND_WITH_INV)
		return EOPNOTSUPP; /* see urdma_operation_send_ops */
	if (!urdma_operation_of(op, qp->ex.qp_base.qp_type) || (qp->datagram && !urdma_may_send_to(qp, wr->wr.ud.ah)))
		return EINVAL;
	if (wr->send_flags & ~(unsigned int)SEND_FLAGS)
		return EINVAL;
	if (wr->num_sge < 0)
		return EINVAL;
	if (op->wc == IBV_WC_BIND_MW)
		return urdma_window_check(wr->bind_mw.mw, &wr->bind_mw.bind_info);
	if (wr->send_flags & IBV_SEND_INLINE) {
		length = total_length(wr->sg_list, wr->num_sge);
		return op->inlinable && length <= qp->max_inline && length <= qp->max_message ? 0 : EINVAL;
	}
	if ((uint32_t)wr->num_sge > qp->sq.max_sge)
		return EINVAL;
	if (op->writes_local && (uint32_t)wr->num_sge > qp->max_sge_read)
		return EINVAL;
	length = total_length(wr->sg_list, wr->num_sge);
	return length <= qp->max_message ? 0 : EINVAL;
}

static void copy_sges(void *to, const struct ibv_sge *from, int n)
{
	struct urdma_abi_sge *sge = to;

	for (int i = 0; i < n; i++)
		sge[i] = (struct urdma_abi_sge){ .addr = from[i].addr, .length = from[i].length, .lkey = from[i].lkey };
}

static uint32_t copy_inline(uint8_t *to, const struct ibv_sge *from, int n)
{
	uint32_t at = 0;

	for (int i = 0; i < n; i++) {
		memcpy(to + at, (const void *)(uintptr_t)from[i].addr, from[i].length);
		at += from[i].length;
	}
	return at;
}

static void write_send(const struct urdma_qp *qp, struct urdma_abi_sqe *slot, const struct ibv_send_wr *wr,
	const struct urdma_operation *op)
{
	slot->wr_id = wr->wr_id;
	slot->opcode = (uint32_t)wr->opcode;
	slot->flags = wr->send_flags;
	slot->imm_or_stag = wr->invalidate_rkey;
	slot->rkey = wr->wr.rdma.rkey;
	slot->remote_addr = wr->wr.rdma.remote_addr;
	slot->compare_add = 0;
	slot->swap = 0;
	if (op->atomic) {
		slot->rkey = wr->wr.atomic.rkey;
		slot->compare_add = wr->wr.atomic.compare_add;
		slot->swap = wr->wr.atomic.swap;
	}
	if (qp->ex.qp_base.qp_type == IBV_QPT_XRC_SEND)
		slot->remote_srqn = wr->qp_type.xrc.remote_srqn;
	if (qp->datagram)
		urdma_sqe_address(slot, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	slot->num_sge = slot->inline_length = 0;
	if (op->wc == IBV_WC_BIND_MW) {
		urdma_window_write(slot, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		wr->bind_mw.mw->rkey = slot->rkey; /* as soon as the request is posted (ibv_alloc_mw(3), ibv_bind_mw(3)) */
	} else if (wr->send_flags & IBV_SEND_INLINE) {
		slot->inline_length = copy_inline((uint8_t *)(slot + 1), wr->sg_list, wr->num_sge);
	} else {
		slot->num_sge = (uint32_t)wr->num_sge;
		copy_sges(slot + 1, wr->sg_list, wr->num_sge);
	}
}

static int post_one_send(struct urdma_qp *qp, const struct ibv_send_wr *wr)
{
	const struct urdma_operation *op = urdma_operation((uint32_t)wr->opcode);
	int status = check_send(qp, wr, op);
	void *slot;

	if (status)
		return status;
	slot = urdma_queue_slot(&qp->sq);
	if (!slot)
		return ENOMEM;
	write_send(qp, slot, wr, op);
	qp->sq.prod++;
	return 0;
}

static int post_one_recv(struct urdma_queue *rq, const struct ibv_recv_wr *wr)
{
	struct urdma_abi_rqe *slot;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;
	slot = urdma_queue_slot(rq);
	if (!slot)
		return ENOMEM;
	slot->wr_id = wr->wr_id;
	slot->num_sge = (uint32_t)wr->num_sge;
	slot->pad = 0;
	copy_sges(slot + 1, wr->sg_list, wr->num_sge);
	rq->prod++;
	return 0;
}

/* *bad_wr is written only if a request is refused (ibv_post_send(3)): Ceph takes any value there for a
 * refused request. */
int urdma_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct urdma_qp *qp = urdma_qp_of(ibv);
	int status = urdma_qp_may_send(qp), taken;
	uint32_t before;
	bool news;

	if (!status)
		status = urdma_refused(qp->client, 0);
	if (status) {
		*bad_wr = wr;
		return status;
	}
	taken = urdma_lock_take(&qp->sq.lock);
	before = qp->sq.prod;
	for (; wr && !status; wr = wr->next) {
		status = post_one_send(qp, wr);
		if (status)
			*bad_wr = wr;
	}
	news = qp->sq.prod != before;
	if (news)
		urdma_queue_publish(&qp->sq);
	urdma_lock_drop(&qp->sq.lock, taken);
	if (news)
		urdma_announce_send(qp);
	return status;
}

/* Posts a list. *news says whether the doorbell must be rung. */
static int post_recvs(struct urdma_queue *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr, bool *news)
{
	int status = 0, taken = urdma_lock_take(&rq->lock);
	uint32_t before = rq->prod;

	for (; wr && !status; wr = wr->next) {
		status = post_one_recv(rq, wr);
		if (status)
			*bad_wr = wr;
	}
	*news = rq->prod != before;
	if (*news)
		urdma_queue_publish(rq);
	urdma_lock_drop(&rq->lock, taken);
	return status;
}

int urdma_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct urdma_qp *qp = urdma_qp_of(ibv);
	/* the queue pair has no receive queue of its own */
	int status = ibv->srq || !ibv->recv_cq ? EINVAL : urdma_qp_may_recv(qp);
	bool news;

	if (!status)
		status = urdma_refused(qp->client, 1);
	if (status) {
		*bad_wr = wr;
		return status;
	}
	status = post_recvs(&qp->rq, wr, bad_wr, &news);
	if (news)
		urdma_ring_doorbell(qp);
	return status;
}

/* No doorbell is rung: urdmad looks again by itself while a message waits for a receive (urdma_abi.h). */
int urdma_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct urdma_srq *srq = urdma_srq_of(ibv);
	int status = urdma_client_alive(srq->client) ? urdma_refused(srq->client, 2) : EIO;
	bool news;

	if (status) {
		*bad_wr = wr;
		return status;
	}
	return post_recvs(&srq->queue, wr, bad_wr, &news);
}
