/*
 * warn.c - see warn.h. What is posted is read from the rings, where it stays until
 * its completion was polled. A thread that posts to the same queue meanwhile may
 * have it read wrongly; a warning is all that comes of it.
 */
#include "warn.h"

#define DRAINING 32u     /* posts after a failed completion that a program may need to know the end */
#define GRH_BYTES 40u
#define EACH 64u         /* registrations, and work requests that each is for, that are too many and too few */
#define TINY 4096u       /* bytes: a page */
#define MANY 1000u       /* regions of less */
#define MUCH 65536u      /* bytes: more than a stack has for messages */
#define HABIT 2u         /* waits without a poll after the arming: the first may be before there is any work */

/* ---- rings ------------------------------------------------------------- */

static void *slot_at(const struct urdma_queue *q, uint32_t index)
{
	return q->slots + (size_t)(index & q->mask) * q->stride;
}

static uint32_t posted(const struct urdma_queue *q)
{
	return URDMA_LOAD(q->prod);
}

/* The oldest whose completion may still be polled. */
static uint32_t oldest(const struct urdma_queue *q)
{
	uint32_t polled = __atomic_load_n(&q->polled, __ATOMIC_ACQUIRE), cons = URDMA_LOAD(q->cons);

	return polled - cons <= posted(q) - cons ? polled : cons;
}

/* Those that urdmad may still carry out. */
static uint32_t undone(const struct urdma_queue *q)
{
	uint32_t done = __atomic_load_n(q->shared_cons, __ATOMIC_ACQUIRE);

	return posted(q) - done <= q->depth ? done : posted(q);
}

static bool signaled(const struct urdma_qp *qp, uint32_t index)
{
	return qp->sq_sig_all || (((const struct urdma_abi_sqe *)slot_at(&qp->sq, index))->flags & IBV_SEND_SIGNALED);
}

static bool works_in(uint32_t state)
{
	return state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_RTR;
}

/* urdmad knows whether the queue pair still works. */
static bool works(struct urdma_qp *qp)
{
	struct urdma_abi_query_qp_response response;

	return urdma_client_alive(qp->client) && urdma_qp_ask(qp, &response) == 0 && works_in(response.attr.qp_state);
}

/* ---- what urdmad alone knows -------------------------------------------------- */

static void tell_unready(struct urdma_qp *qp, const struct urdma_abi_query_qp_response *now)
{
	if (now->unready)
		urdma_warn(qp->client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_UNREADY, "%u receives are posted now", posted(&qp->rq));
}

/* The first receives were posted. */
static void check_ready(struct urdma_qp *qp)
{
	struct urdma_abi_query_qp_response now;

	if (urdma_client_alive(qp->client) && urdma_qp_ask(qp, &now) == 0)
		tell_unready(qp, &now);
}

static void check_reads(struct urdma_qp *qp, const struct urdma_abi_query_qp_response *now)
{
	if (now->attr.max_rd_atomic > now->peer_reads)
		urdma_warn(qp->client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_RD_ATOMIC, "max_rd_atomic is %u, and max_dest_rd_atomic of the peer %u",
			   now->attr.max_rd_atomic, now->peer_reads);
}

/* ---- children ----------------------------------------------------------------- */

static bool in_child(struct urdma_client *client, const char *call)
{
	if (urdma_client_state(client) != URDMA_CLIENT_FORKED)
		return false;
	urdma_warn(NULL, 0, URDMA_ABI_PITFALL_FORKED, "%s", call);
	return true;
}

/* ---- completion queues ------------------------------------------------------ */

/* What one queue pair may yet complete on cq. */
static uint32_t owed(const struct urdma_qp *qp, bool sends)
{
	const struct urdma_queue *q = sends ? &qp->sq : &qp->rq;
	uint32_t n = 0;

	if (!q->depth)
		return 0;
	for (uint32_t i = oldest(q); i != posted(q); i++)
		n += !sends || signaled(qp, i);
	return n;
}

/* How many queue pairs' queues, all full, would complete on cq. */
static uint32_t most(const struct urdma_cq *cq)
{
	uint32_t n = 0;

	for (const struct urdma_qp *qp = cq->senders; qp; qp = qp->next_sender)
		n += qp->sq.depth;
	for (const struct urdma_qp *qp = cq->receivers; qp; qp = qp->next_receiver)
		n += qp->rq.depth;
	return n;
}

/* The lock is this thread's already between ibv_start_poll and ibv_end_poll. */
static int lock_queue(struct urdma_cq *cq)
{
	return URDMA_LOAD(cq->poller) == pthread_self() ? 0 : urdma_lock_take(&cq->lock);
}

static void check_room(struct urdma_cq *cq, uint32_t qpn)
{
	uint32_t n = 0, entries;
	int taken = lock_queue(cq);

	entries = (uint32_t)cq->ex.cqe;
	if (!cq->ignore_overrun && most(cq) > entries) {
		for (const struct urdma_qp *qp = cq->senders; qp; qp = qp->next_sender)
			n += owed(qp, true);
		for (const struct urdma_qp *qp = cq->receivers; qp; qp = qp->next_receiver)
			n += owed(qp, false);
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
	for (int i = 0; i < n; i++) {
		if (wc[i].status == IBV_WC_SUCCESS)
			continue;
		taken = lock_queue(cq);
		urdma_warn_failed(cq, wc[i].qp_num, wc[i].status);
		urdma_lock_drop(&cq->lock, taken);
	}
	return n;
}

static int (*notify)(struct ibv_cq *cq, int solicited_only); /* what arms, of a folder above */

/* Within ibv_start_poll the program goes on polling. */
static int req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct urdma_cq *cq = urdma_cq_of(ibv);
	bool polling = URDMA_LOAD(cq->poller) == pthread_self();
	bool waiting = __atomic_load_n(&cq->ring->prod, __ATOMIC_ACQUIRE) != URDMA_LOAD(cq->cons);

	URDMA_STORE(cq->unpolled, polling ? 0 : waiting ? 2 : 1);
	URDMA_STORE(cq->awaits, true);
	return notify(ibv, solicited_only);
}

/* The first time a program arms a queue there may be nothing to poll yet. */
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
		urdma_warn(channel->client, 0, URDMA_ABI_PITFALL_NOT_ARMED, "of the queues of the channel none is armed: this call waits for ever");
}

/* ---- registrations ------------------------------------------------------------ */

static uint64_t posts;   /* of this process */
static uint64_t before;  /* that at the last registration */
static uint32_t in_turn; /* registrations behind a deregistration, with few posts between, and no change of queue pairs */
static uint32_t tiny;
static bool deregistered; /* since the last registration, which was for few posts */

/* The set-up of a program and of its connections may register as it likes. */
void urdma_warn_setup(void)
{
	URDMA_STORE(in_turn, 0);
	URDMA_STORE(deregistered, false);
}

static bool is_tiny(const struct ibv_mr *mr)
{
	return mr->length && mr->length < TINY;
}

void urdma_warn_registers(const struct ibv_mr *mr, const char *fallback)
{
	if (fallback && mr->length >= MUCH)
		urdma_warn(NULL, 0, URDMA_ABI_PITFALL_FALLBACK, "%zu bytes, because of %s", mr->length, fallback);
	if (is_tiny(mr) && __atomic_add_fetch(&tiny, 1, __ATOMIC_RELAXED) == MANY)
		urdma_warn(NULL, 0, URDMA_ABI_PITFALL_TINY, "%u regions, this one of %zu bytes", MANY, mr->length);
	if (URDMA_LOAD(deregistered) && __atomic_add_fetch(&in_turn, 1, __ATOMIC_RELAXED) == EACH)
		urdma_warn(NULL, 0, URDMA_ABI_PITFALL_REGISTERS, "%u regions in turn, each for at most %u work requests", EACH, EACH);
	URDMA_STORE(deregistered, false);
	URDMA_STORE(before, URDMA_LOAD(posts));
}

static void check_use(const struct ibv_mr *mr)
{
	uint64_t n = URDMA_LOAD(posts) - URDMA_LOAD(before);

	if (is_tiny(mr))
		__atomic_sub_fetch(&tiny, 1, __ATOMIC_RELAXED);
	if (n > EACH)
		urdma_warn_setup();
	else if (n)
		URDMA_STORE(deregistered, true);
}

/* ---- sends ------------------------------------------------------------------ */

static void check_atomic(struct urdma_qp *qp, const struct urdma_abi_sqe *slot)
{
	const struct urdma_abi_sge *sge = (const void *)(slot + 1);

	if ((slot->remote_addr & 7) || slot->num_sge != 1 || sge->length != 8)
		urdma_warn(qp->client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_ATOMIC, "remote_addr %#llx, num_sge %u, length of the first %u",
			   (unsigned long long)slot->remote_addr, slot->num_sge, slot->num_sge ? sge->length : 0);
}

static void check_sges(struct urdma_client *client, uint32_t qpn, const struct urdma_abi_sge *sge, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!sge[i].length)
			urdma_warn(client, qpn, URDMA_ABI_PITFALL_EMPTY_SGE, "sg_list[%u]", i);
}

/* After a failed completion that was polled. */
static void check_stopped(struct urdma_qp *qp, uint32_t posts)
{
	if (!qp->error)
		return;
	if (qp->ex.qp_base.state != IBV_QPS_ERR && works(qp)) { /* it was reset */
		qp->error = qp->posts_after = 0;
		return;
	}
	qp->posts_after += posts;
	if (qp->posts_after > DRAINING)
		urdma_warn(qp->client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_AFTER_ERROR, "%u work requests since the completion with status %u, %s",
			   qp->posts_after, qp->error, ibv_wc_status_str((enum ibv_wc_status)qp->error));
}

static void explain_refusal(struct urdma_client *client, uint32_t qpn, const struct urdma_queue *q, int status, int state_status)
{
	if (state_status == EINVAL)
		urdma_warn(client, qpn, URDMA_ABI_PITFALL_STATE, "nothing was posted");
	else if (status == ENOMEM)
		urdma_warn(client, qpn, URDMA_ABI_PITFALL_FULL, "%u work requests are posted, and the queue holds %u", posted(q) - oldest(q), q->depth);
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
		urdma_warn(qp->client, qpn, URDMA_ABI_PITFALL_UNSIGNALED, "%u sends without IBV_SEND_SIGNALED, and the send queue holds %u", qp->unsignaled, qp->sq.depth);
	if (to != from) {
		__atomic_add_fetch(&posts, to - from, __ATOMIC_RELAXED);
		check_room(urdma_cq_of(qp->ex.qp_base.send_cq), qpn);
		check_stopped(qp, to - from);
	}
	if (status)
		explain_refusal(qp->client, qpn, &qp->sq, status, urdma_qp_may_send(qp));
}

/* What ibv_post_send found wrong with a request. */
static void check_refused(struct urdma_qp *qp, const struct ibv_send_wr *wr)
{
	uint64_t length = 0;

	if (qp->datagram && wr->wr.ud.ah && !urdma_may_send_to(qp, wr->wr.ud.ah))
		urdma_warn(qp->client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_AH_DOMAIN, "wr_id %#llx", (unsigned long long)wr->wr_id);
	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if ((wr->send_flags & IBV_SEND_INLINE) && length > qp->max_inline)
		urdma_warn(qp->client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_INLINE, "%llu bytes, and max_inline_data is %u",
			   (unsigned long long)length, qp->max_inline);
	else if (!(wr->send_flags & IBV_SEND_INLINE) && wr->num_sge > (int)qp->sq.max_sge)
		urdma_warn(qp->client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_SGES, "num_sge %d, and max_send_sge is %u", wr->num_sge, qp->sq.max_sge);
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

/* Receives into the very same memory are what programs have that throw away what they get. */
static void check_overlap(struct urdma_client *client, uint32_t qpn, const struct urdma_queue *q, uint32_t index)
{
	const struct urdma_abi_rqe *now = slot_at(q, index), *other;
	const struct urdma_abi_sge *a = (const void *)(now + 1), *b;

	for (uint32_t i = undone(q); i != index; i++) {
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

static void check_receives(struct urdma_client *client, uint32_t qpn, const struct urdma_queue *q, uint32_t from, bool datagram)
{
	const struct urdma_abi_rqe *slot;
	const struct urdma_abi_sge *sge;
	uint64_t length;

	__atomic_add_fetch(&posts, posted(q) - from, __ATOMIC_RELAXED);
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
			check_ready(qp);
		check_room(urdma_cq_of(ibv->recv_cq), ibv->qp_num);
		check_stopped(qp, posted(&qp->rq) - from);
	}
	if (status == EINVAL && (*bad_wr)->num_sge > (int)qp->rq.max_sge)
		urdma_warn(qp->client, ibv->qp_num, URDMA_ABI_PITFALL_SGES, "num_sge %d, and max_recv_sge is %u", (*bad_wr)->num_sge, qp->rq.max_sge);
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

/* ---- ends ------------------------------------------------------------------- */

/* The completion that says why the queue pair failed is in the queue still. */
static uint32_t unread(struct urdma_cq *cq, uint32_t qpn)
{
	uint32_t prod, status = 0;
	int taken;

	if (!cq)
		return 0;
	taken = lock_queue(cq);
	prod = __atomic_load_n(&cq->ring->prod, __ATOMIC_ACQUIRE);
	for (uint32_t i = cq->cons; i != prod && !status; i++)
		if (cq->entries[i & cq->mask].qp_num == qpn && cq->entries[i & cq->mask].status != IBV_WC_WR_FLUSH_ERR)
			status = cq->entries[i & cq->mask].status;
	urdma_lock_drop(&cq->lock, taken);
	return status;
}

void urdma_warn_destroys(struct urdma_qp *qp)
{
	struct ibv_qp *base = &qp->ex.qp_base;
	struct urdma_abi_query_qp_response now;
	uint32_t status, sends;

	urdma_warn_setup();
	if (!base->send_cq || urdma_client_state(qp->client) != URDMA_CLIENT_LIVE || urdma_qp_ask(qp, &now))
		return;
	check_reads(qp, &now);
	if (qp->rq.depth && !posted(&qp->rq))
		tell_unready(qp, &now);
	sends = qp->sq.depth ? posted(&qp->sq) - undone(&qp->sq) : 0;
	if (sends && works_in(now.attr.qp_state))
		urdma_warn(qp->client, base->qp_num, URDMA_ABI_PITFALL_DESTROYED, "%u sends", sends);
	status = unread(urdma_cq_of(base->send_cq), base->qp_num);
	if (!status)
		status = unread(urdma_cq_of(base->recv_cq), base->qp_num);
	if (status)
		urdma_warn(qp->client, base->qp_num, URDMA_ABI_PITFALL_UNREAD, "status %u, %s", status, ibv_wc_status_str((enum ibv_wc_status)status));
}

void urdma_warn_modified(struct urdma_qp *qp, const struct urdma_abi_query_qp_response *now, int mask)
{
	const struct urdma_abi_qp_attr *attr = &now->attr;
	uint32_t qpn = qp->ex.qp_base.qp_num;

	if ((mask & IBV_QP_TIMEOUT) && !attr->timeout)
		urdma_warn(qp->client, qpn, URDMA_ABI_PITFALL_TIMEOUT, "attr.timeout");
	if ((mask & IBV_QP_RETRY_CNT) && !attr->retry_cnt)
		urdma_warn(qp->client, qpn, URDMA_ABI_PITFALL_RETRY, "attr.retry_cnt");
	if (!qp->datagram && (mask & IBV_QP_SQ_PSN) && !attr->sq_psn && !attr->rq_psn)
		urdma_warn(qp->client, qpn, URDMA_ABI_PITFALL_PSN, "attr.sq_psn");
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		check_reads(qp, now);
}

static bool names(const struct urdma_queue *q, size_t head, uint32_t index, uint32_t lkey)
{
	const uint8_t *slot = slot_at(q, index);
	const struct urdma_abi_sge *sge = (const void *)(slot + head);
	uint32_t n = head == sizeof(struct urdma_abi_sqe) ? ((const struct urdma_abi_sqe *)(const void *)slot)->num_sge :
							     ((const struct urdma_abi_rqe *)(const void *)slot)->num_sge;

	for (uint32_t i = 0; i < n && i < q->max_sge; i++)
		if (sge[i].lkey == lkey)
			return true;
	return false;
}

/* Work of a queue that urdmad has not done and that names a region. */
static uint32_t using(const struct urdma_queue *q, size_t head, uint32_t lkey)
{
	uint32_t n = 0;

	for (uint32_t i = q->depth ? undone(q) : posted(q); i != posted(q); i++)
		n += names(q, head, i, lkey);
	return n;
}

void urdma_warn_deregisters(struct urdma_client *client, const struct ibv_mr *mr)
{
	struct urdma_qp *qp;
	uint32_t sends, receives;

	check_use(mr);
	if (urdma_client_state(client) != URDMA_CLIENT_LIVE)
		return;
	for (uint32_t i = 0; i < client->max_pairs; i++) {
		qp = __atomic_load_n(&client->pairs[i].name, __ATOMIC_ACQUIRE) ? client->pairs[i].qp : NULL;
		if (!qp || !qp->rings)
			continue;
		sends = using(&qp->sq, sizeof(struct urdma_abi_sqe), mr->lkey);
		receives = qp->ex.qp_base.srq ? 0 : using(&qp->rq, sizeof(struct urdma_abi_rqe), mr->lkey);
		if (sends + receives && works(qp))
			urdma_warn(client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_DEREGISTERED, "%u sends and %u receives name lkey %#x, [%p, +%zu)",
				   sends, receives, mr->lkey, mr->addr, mr->length);
	}
}

/* Around what the tables have, posts that fail on purpose (refuse.c) and strict polls too. */
void urdma_warn_watch(struct ibv_context *context)
{
	send = context->ops.post_send;
	receive = context->ops.post_recv;
	receive_shared = context->ops.post_srq_recv;
	notify = context->ops.req_notify_cq;
	poll = context->ops.poll_cq;
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	context->ops.post_srq_recv = post_srq_recv;
	context->ops.poll_cq = poll_cq;
	context->ops.req_notify_cq = req_notify_cq;
}
