/* warn.c - mistakes in posts, see warn.h. */
#include "warn_rings.h"

#define DRAINING 32u     /* posts after a failed completion that a program may need to drain its queues */
#define GRH_BYTES 40u

/* ---- sends ------------------------------------------------------------------ */

static void check_atomic(struct urdma_qp *qp, const struct urdma_abi_sqe *slot)
{
	const struct urdma_abi_sge *sge = (const void *)(slot + 1);

	if ((slot->remote_addr & 7) || slot->num_sge != 1 || sge->length != 8)
		urdma_warn(qp->client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_ATOMIC,
			"remote_addr %#llx, num_sge %u, length of the first %u",
			   (unsigned long long)slot->remote_addr, slot->num_sge, slot->num_sge ? sge->length : 0);
}

static void check_sges(struct urdma_client *client, uint32_t qpn, const struct urdma_abi_sge *sge, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!sge[i].length)
			urdma_warn(client, qpn, URDMA_ABI_PITFALL_EMPTY_SGE, "sg_list[%u]", i);
}

/* Checks posts after a failed completion was polled. */
static void check_stopped(struct urdma_qp *qp, uint32_t posts)
{
	if (!qp->error)
		return;
	if (qp->ex.qp_base.state != IBV_QPS_ERR && works(qp)) { /* the queue pair was reset */
		qp->error = qp->posts_after = 0;
		return;
	}
	qp->posts_after += posts;
	if (qp->posts_after > DRAINING)
		urdma_warn(qp->client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_AFTER_ERROR,
			"%u work requests since the completion with status %u, %s",
			   qp->posts_after, qp->error, ibv_wc_status_str((enum ibv_wc_status)qp->error));
}

static void explain_refusal(struct urdma_client *client, uint32_t qpn, const struct urdma_queue *q, int status,
	int state_status)
{
	if (state_status == EINVAL)
		urdma_warn(client, qpn, URDMA_ABI_PITFALL_STATE, "nothing was posted");
	else if (status == ENOMEM)
		urdma_warn(client, qpn, URDMA_ABI_PITFALL_FULL, "%u work requests are posted, and the queue holds %u",
			posted(q) - oldest(q), q->depth);
}

void urdma_warn_sends(struct urdma_qp *qp, uint32_t from, uint32_t to, int status)
{
	uint32_t qpn = qp->ex.qp_base.qp_num;
	const struct urdma_operation *op;
	const struct urdma_abi_sqe *slot;

	for (uint32_t i = from; i != to; i++) {
		slot = slot_at(&qp->sq, i);
		op = urdma_operation(slot->opcode);
		qp->unsignaled = signaled(qp, i) ? 0 : qp->unsignaled + 1;
		if (op && op->atomic)
			check_atomic(qp, slot);
		check_sges(qp->client, qpn, (const void *)(slot + 1), slot->num_sge);
	}
	if (qp->unsignaled > qp->sq.depth || (status == ENOMEM && qp->unsignaled >= qp->sq.depth))
		urdma_warn(qp->client, qpn, URDMA_ABI_PITFALL_UNSIGNALED,
			"%u sends without IBV_SEND_SIGNALED, and the send queue holds %u", qp->unsignaled, qp->sq.depth);
	if (to != from) {
		urdma_warn_counts(to - from);
		urdma_warn_room(urdma_cq_of(qp->ex.qp_base.send_cq), qpn);
		check_stopped(qp, to - from);
	}
	if (status)
		explain_refusal(qp->client, qpn, &qp->sq, status, urdma_qp_may_send(qp));
}

/* Checks why ibv_post_send refused a request. */
static void check_refused(struct urdma_qp *qp, const struct ibv_send_wr *wr)
{
	uint64_t length = 0;

	if (qp->datagram && wr->wr.ud.ah && !urdma_may_send_to(qp, wr->wr.ud.ah))
		urdma_warn(qp->client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_AH_DOMAIN, "wr_id %#llx",
			(unsigned long long)wr->wr_id);
	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if ((wr->send_flags & IBV_SEND_INLINE) && length > qp->max_inline)
		urdma_warn(qp->client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_INLINE, "%llu bytes, and max_inline_data is %u",
			   (unsigned long long)length, qp->max_inline);
	else if (!(wr->send_flags & IBV_SEND_INLINE) && wr->num_sge > (int)qp->sq.max_sge)
		urdma_warn(qp->client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_SGES, "num_sge %d, and max_send_sge is %u",
			wr->num_sge, qp->sq.max_sge);
}

static int (*send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);

static int post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct urdma_qp *qp = urdma_qp_of(ibv);
	uint32_t from;
	int status;

	if (in_child(qp->client, "ibv_post_send"))
		return send(ibv, wr, bad_wr);
	from = posted(&qp->sq);
	status = send(ibv, wr, bad_wr);
	urdma_warn_sends(qp, from, posted(&qp->sq), status);
	if (status == EINVAL)
		check_refused(qp, *bad_wr);
	return status;
}

/* ---- receives --------------------------------------------------------------- */

static bool cross(const struct urdma_abi_sge *a, const struct urdma_abi_sge *b)
{
	return a->addr != b->addr && a->addr < b->addr + b->length && b->addr < a->addr + a->length;
}

/* Receives into identical memory are allowed: programs that discard the data do so. */
static void check_overlap(struct urdma_client *client, uint32_t qpn, const struct urdma_queue *q, uint32_t index)
{
	const struct urdma_abi_rqe *now = slot_at(q, index), *other;
	const struct urdma_abi_sge *a = (const void *)(now + 1), *b;

	for (uint32_t i = undone(q); (int32_t)(index - i) > 0; i++) { /* urdmad may have carried out index, too */
		other = slot_at(q, i);
		b = (const void *)(other + 1);
		for (uint32_t k = 0; k < now->num_sge * other->num_sge; k++)
			if (cross(&a[k / other->num_sge], &b[k % other->num_sge])) {
				urdma_warn(client, qpn, URDMA_ABI_PITFALL_OVERLAP, "wr_id %#llx has [%#llx, +%u), and wr_id %#llx [%#llx, +%u)",
					   (unsigned long long)now->wr_id, (unsigned long long)a[k / other->num_sge].addr,
					   a[k / other->num_sge].length, (unsigned long long)other->wr_id,
					   (unsigned long long)b[k % other->num_sge].addr, b[k % other->num_sge].length);
				return;
			}
	}
}

static void check_receives(struct urdma_client *client, uint32_t qpn, const struct urdma_queue *q, uint32_t from,
	bool datagram)
{
	const struct urdma_abi_rqe *slot;
	const struct urdma_abi_sge *sge;
	uint64_t length;

	urdma_warn_counts(posted(q) - from);
	for (uint32_t i = from; i != posted(q); i++) {
		slot = slot_at(q, i);
		sge = (const void *)(slot + 1);
		length = 0;
		for (uint32_t k = 0; k < slot->num_sge; k++)
			length += sge[k].length;
		if (datagram && length < GRH_BYTES)
			urdma_warn(client, qpn, URDMA_ABI_PITFALL_GRH, "%llu bytes", (unsigned long long)length);
		check_sges(client, qpn, sge, slot->num_sge);
		check_overlap(client, qpn, q, i);
	}
}

static int (*receive)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

static int post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct urdma_qp *qp = urdma_qp_of(ibv);
	uint32_t from;
	int status;

	if (in_child(qp->client, "ibv_post_recv"))
		return receive(ibv, wr, bad_wr);
	from = posted(&qp->rq);
	status = receive(ibv, wr, bad_wr);
	check_receives(qp->client, ibv->qp_num, &qp->rq, from, qp->datagram);
	if (posted(&qp->rq) != from) {
		if (!from)
			urdma_warn_ready(qp);
		urdma_warn_room(urdma_cq_of(ibv->recv_cq), ibv->qp_num);
		check_stopped(qp, posted(&qp->rq) - from);
	}
	if (status == EINVAL && (*bad_wr)->num_sge > (int)qp->rq.max_sge)
		urdma_warn(qp->client, ibv->qp_num, URDMA_ABI_PITFALL_SGES, "num_sge %d, and max_recv_sge is %u", (*bad_wr)->num_sge,
			qp->rq.max_sge);
	else if (status)
		explain_refusal(qp->client, ibv->qp_num, &qp->rq, status, urdma_qp_may_recv(qp));
	return status;
}

static int (*receive_shared)(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

static int post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct urdma_srq *srq = urdma_srq_of(ibv);
	uint32_t from = posted(&srq->queue);
	int status = receive_shared(ibv, wr, bad_wr);

	check_receives(srq->client, 0, &srq->queue, from, false);
	return status;
}

/* Wraps the functions in the tables, which may be the ones that fail on purpose (refuse.c). */
void urdma_warn_watch(struct ibv_context *context)
{
	send = context->ops.post_send;
	receive = context->ops.post_recv;
	receive_shared = context->ops.post_srq_recv;
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	context->ops.post_srq_recv = post_srq_recv;
	urdma_warn_watch_cq(context);
}
