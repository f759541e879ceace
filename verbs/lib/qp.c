/* qp.c - creates and destroys queue pairs. Attributes are in qpattr.c, posting in post.c and build.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "datapath/warn.h"
#include "internal.h"
#include "making.h"
#include "session/rings.h"
#include "tables.h"

static bool queues_fit(const struct urdma_abi_qp_response *r)
{
	const struct urdma_abi_qp_cap *cap = &r->cap;
	size_t send = cap->max_send_sge * sizeof(struct urdma_abi_sge);
	size_t recv = cap->max_recv_sge * sizeof(struct urdma_abi_sge);

	if (send < cap->max_inline)
		send = cap->max_inline;
	return urdma_queue_fits(&r->sq, r->bytes, cap->max_send_wr, sizeof(struct urdma_abi_sq_ring),
			  sizeof(struct urdma_abi_sqe) + send) &&
	       urdma_queue_fits(&r->rq, r->bytes, cap->max_recv_wr, sizeof(struct urdma_abi_rq_ring),
			  sizeof(struct urdma_abi_rqe) + recv);
}

static void set_send_queue(struct urdma_qp *qp, const struct urdma_abi_qp_response *r)
{
	static struct urdma_abi_sq_ring absent; /* for queue pairs without a send queue; both indices stay 0 */
	uint8_t *base = qp->rings;
	struct urdma_abi_sq_ring *head = r->sq.entries ? (void *)(base + r->sq.head_offset) : &absent;

	qp->sq = (struct urdma_queue){
		.depth = r->cap.max_send_wr, .mask = r->sq.entries - 1, .stride = r->sq.stride,
		.max_sge = r->cap.max_send_sge, .slots = base + r->sq.slots_offset, .failing = head,
		.shared_prod = &head->prod, .shared_cons = &head->cons, .all_signaled = qp->sq_sig_all,
		.until_polled = qp->client->strict & URDMA_ABI_STRICT_SLOTS,
	};
	qp->max_inline = r->cap.max_inline;
}

static void set_receive_queue(struct urdma_qp *qp, const struct urdma_abi_qp_response *r)
{
	static struct urdma_abi_rq_ring absent; /* for queue pairs without a receive queue; both indices stay 0 */
	uint8_t *base = qp->rings;
	struct urdma_abi_rq_ring *head = r->rq.entries ? (void *)(base + r->rq.head_offset) : &absent;

	qp->rq = (struct urdma_queue){
		.depth = r->cap.max_recv_wr, .mask = r->rq.entries - 1, .stride = r->rq.stride,
		.max_sge = r->cap.max_recv_sge, .slots = base + r->rq.slots_offset,
		.shared_prod = &head->prod, .shared_cons = &head->cons, .all_signaled = true,
	};
}

static int attach(struct urdma_qp *qp, const struct urdma_abi_qp_response *r, int fd)
{
	void *at = NULL;
	int status = EPROTO;

	if (queues_fit(r) && r->worker < qp->client->workers && r->doorbell < URDMA_ABI_NUM_DOORBELLS)
		status = urdma_rings_map(qp->client, r->memfd, r->bytes, fd, &at);
	if (fd >= 0)
		urdma_close(fd);
	if (status)
		return status;
	qp->rings = at;
	qp->bytes = r->bytes;
	qp->memfd = r->memfd;
	set_send_queue(qp, r);
	set_receive_queue(qp, r);
	qp->worker = r->worker;
	qp->bells = &qp->client->bells[r->worker];
	qp->doorbell = r->doorbell;
	qp->ex.qp_base.qp_num = r->qpn;
	return 0;
}

/* Returns the capacities to request. Capacities of a receive queue are ignored if the queue pair has none
 * of its own (ibv_create_qp(3)). */
static struct ibv_qp_cap wanted_cap(const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_cap cap = attr->cap;

	if (attr->srq || attr->qp_type == IBV_QPT_XRC_SEND)
		cap.max_recv_wr = cap.max_recv_sge = 0;
	return cap;
}

void urdma_qp_request(const struct urdma_qp *qp, const struct ibv_qp_init_attr_ex *attr,
	struct urdma_abi_create_qp *request)
{
	struct ibv_qp_cap cap = wanted_cap(attr);

	*request = (struct urdma_abi_create_qp){
		.pd = attr->pd->handle, .qp_type = attr->qp_type, .send_cq = attr->send_cq->handle,
		.recv_cq = attr->recv_cq ? attr->recv_cq->handle : URDMA_ABI_NO_HANDLE,
		.srq = attr->srq ? attr->srq->handle : URDMA_ABI_NO_HANDLE, .sq_sig_all = attr->sq_sig_all != 0,
		.cap = { cap.max_send_wr, cap.max_recv_wr, cap.max_send_sge, cap.max_recv_sge, cap.max_inline_data },
		.user_handle = qp->user_handle,
	};
}

int urdma_qp_made(struct urdma_qp *qp, const struct urdma_abi_qp_response *response, int fd, struct ibv_qp_cap *cap)
{
	int status = attach(qp, response, fd);

	if (qp->client->strict & URDMA_ABI_STRICT_INLINE)
		qp->max_inline = cap->max_inline_data;
	qp->ex.qp_base.handle = response->handle;
	*cap = (struct ibv_qp_cap){ response->cap.max_send_wr, response->cap.max_recv_wr, response->cap.max_send_sge,
				    response->cap.max_recv_sge, qp->max_inline };
	return status ? status : urdma_handles_add(qp->client, URDMA_KIND_QP, response->handle, qp);
}

static int ask_for_rings(struct urdma_qp *qp, struct ibv_qp_init_attr_ex *attr)
{
	struct urdma_abi_create_qp request;
	struct urdma_abi_qp_response response;
	int fd, status;

	urdma_qp_request(qp, attr, &request);
	urdma_rings_lock(qp->client);
	status = urdma_rings_call(qp->client, URDMA_ABI_CREATE_QP, &request, sizeof(request), &response, sizeof(response),
		&fd);
	if (!status) {
		status = urdma_qp_made(qp, &response, fd, &attr->cap);
		if (status)
			urdma_call_handle(qp->client, URDMA_ABI_DESTROY_QP, response.handle);
	}
	urdma_rings_unlock(qp->client);
	return status;
}

/* A completion queue lists the queue pairs that complete on it: needed when urdmad has ended, and for
 * EBUSY. */
static void join_queues(struct urdma_qp *qp)
{
	struct urdma_cq *send = urdma_cq_of(qp->ex.qp_base.send_cq), *recv = urdma_cq_of(qp->ex.qp_base.recv_cq);
	int taken = urdma_lock_take(&send->lock);

	qp->next_sender = send->senders;
	send->senders = qp;
	URDMA_STORE(send->bells, qp->bells);
	urdma_lock_drop(&send->lock, taken);

	if (!recv)
		return;
	taken = urdma_lock_take(&recv->lock);
	qp->next_receiver = recv->receivers;
	recv->receivers = qp;
	URDMA_STORE(recv->bells, qp->bells);
	urdma_lock_drop(&recv->lock, taken);
}

/* urdmad may destroy the queue pair before it reads its doorbell, which an arming had rung: another queue
 * pair's doorbell is rung instead. */
static void tell_missed(struct urdma_cq *cq)
{
	if (urdma_client_state(cq->client) == URDMA_CLIENT_LIVE && !cq->returned)
		urdma_cq_tell_missed(cq);
}

static void leave_queues(struct urdma_qp *qp)
{
	struct urdma_cq *send = urdma_cq_of(qp->ex.qp_base.send_cq), *recv = urdma_cq_of(qp->ex.qp_base.recv_cq);
	int taken = urdma_lock_take(&send->lock);
	struct urdma_qp **at;

	for (at = &send->senders; *at != qp; at = &(*at)->next_sender)
		;
	*at = qp->next_sender;
	tell_missed(send);
	urdma_lock_drop(&send->lock, taken);

	if (!recv)
		return;
	taken = urdma_lock_take(&recv->lock);
	for (at = &recv->receivers; *at != qp; at = &(*at)->next_receiver)
		;
	*at = qp->next_receiver;
	tell_missed(recv);
	urdma_lock_drop(&recv->lock, taken);
}

static int check_cap(const struct urdma_abi_device *info, const struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_cap cap = wanted_cap(attr);
	const struct {
		const char *name;
		uint32_t asked, most;
	} limits[] = {
		{ "max_send_wr", cap.max_send_wr, info->max_qp_wr },
		{ "max_recv_wr", cap.max_recv_wr, info->max_qp_wr },
		{ "max_send_sge", cap.max_send_sge, info->max_sge },
		{ "max_recv_sge", cap.max_recv_sge, info->max_sge },
		{ "max_inline_data", cap.max_inline_data, info->max_inline },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (limits[i].asked > limits[i].most)
			return urdma_wrong(EINVAL, "ibv_create_qp: cap.%s is %u, allowed: 0 to %u", limits[i].name, limits[i].asked,
				limits[i].most);
	return 0;
}

/* Checks that need no request to urdmad. */
static int check_init(const struct urdma_abi_device *info, const struct ibv_qp_init_attr_ex *attr)
{
	uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;

	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return EINVAL; /* type XRC_RECV needs an XRC domain, which only ibv_create_qp_ex can name */
	if ((attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UC && attr->qp_type != IBV_QPT_UD &&
	     attr->qp_type != IBV_QPT_RAW_PACKET && attr->qp_type != IBV_QPT_XRC_SEND) ||
	    (attr->comp_mask & ~known))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
		(attr->send_ops_flags & ~urdma_operation_send_ops(attr->qp_type)))
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || !attr->send_cq)
		return EINVAL;
	if (attr->qp_type == IBV_QPT_XRC_SEND ? attr->srq != NULL : !attr->recv_cq)
		return EINVAL;
	return check_cap(info, attr);
}

static void discard(struct urdma_qp *qp)
{
	if (qp->rings)
		urdma_rings_unmap(qp->client, qp->memfd, qp->rings, qp->bytes);
	pthread_mutex_destroy(&qp->ex.qp_base.mutex);
	pthread_cond_destroy(&qp->ex.qp_base.cond);
	free(qp);
}

void urdma_qp_discard(struct urdma_qp *qp)
{
	urdma_pairs_hide(qp->client, qp->user_handle);
	urdma_pairs_forget(qp->client, qp->user_handle);
	discard(qp);
}

struct urdma_qp *urdma_qp_bare(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	struct urdma_qp *qp = calloc(1, sizeof(*qp));
	struct ibv_qp *base;
	int status;

	if (!qp)
		return NULL;
	qp->client = urdma_context_of(context)->client;
	base = &qp->ex.qp_base;
	base->context = context;
	base->qp_context = attr->qp_context;
	base->pd = attr->pd;
	base->send_cq = attr->send_cq;
	base->recv_cq = attr->recv_cq;
	base->srq = attr->srq;
	base->qp_type = attr->qp_type;
	base->state = IBV_QPS_RESET;
	pthread_mutex_init(&base->mutex, NULL);
	pthread_cond_init(&base->cond, NULL);
	qp->async = (struct urdma_events){ &base->mutex, &base->cond, &base->events_completed, 0 };
	if (urdma_warn_wanted)
		urdma_warn_setup();
	status = urdma_pairs_add(qp->client, qp, &qp->user_handle);
	if (!status)
		return qp;
	discard(qp);
	return urdma_null(status);
}

struct urdma_qp *urdma_qp_new(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	const struct urdma_abi_device *info = urdma_context_of(context)->info;
	struct urdma_qp *qp;
	int status = check_init(info, attr);

	if (status)
		return urdma_null(status);
	qp = urdma_qp_bare(context, attr);
	if (!qp)
		return NULL;
	qp->datagram = attr->qp_type == IBV_QPT_UD;
	if (qp->datagram)
		qp->domain = urdma_domain_of(attr->pd);
	qp->max_message = urdma_qp_max_message(attr->qp_type, info);
	qp->max_sge_read = info->max_sge_rd;
	qp->sq_sig_all = attr->sq_sig_all;
	return qp;
}

void urdma_qp_ready(struct urdma_qp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		qp->extended = true;
		urdma_build_fill(qp, attr->send_ops_flags);
	}
	join_queues(qp);
}

struct ibv_qp *urdma_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct urdma_qp *qp = urdma_qp_new(context, attr);
	int status;

	if (!qp)
		return NULL;
	status = ask_for_rings(qp, attr);
	if (status) {
		urdma_qp_discard(qp);
		return urdma_null(status);
	}
	urdma_qp_ready(qp, attr);
	return &qp->ex.qp_base;
}

URDMA_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = urdma_extended_attr(attr, pd);
	struct ibv_qp *qp = urdma_create_qp_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

URDMA_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return urdma_qp_of(qp)->extended ? &urdma_qp_of(qp)->ex : NULL;
}

/* urdmad has destroyed the queue pair, so no completion of it follows the ones removed here. If one comes
 * from a urdmad that outlives the session, its queue pair number is unknown and it is ignored. */
void urdma_qp_end(struct urdma_qp *qp)
{
	urdma_pairs_hide(qp->client, qp->user_handle);
	urdma_qp_forget(qp);
	if (qp->ex.qp_base.send_cq)
		leave_queues(qp); /* takes both locks, except in a child, where no thread polls */
	urdma_pairs_forget(qp->client, qp->user_handle);
	urdma_events_wait(qp->client, &qp->async);
	discard(qp);
}

URDMA_EXPORT int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct urdma_qp *qp = urdma_qp_of(ibv);
	int status;

	if (urdma_warn_wanted)
		urdma_warn_destroys(qp);
	status = urdma_handles_destroy(qp->client, URDMA_KIND_QP, URDMA_ABI_DESTROY_QP, ibv->handle, qp);

	if (!status)
		urdma_qp_end(qp);
	return status;
}
