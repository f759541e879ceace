/*
 * queues.c - creates a queue pair with its own completion queues and channels by one message to urdmad,
 * and destroys them by one. rdma_cm does this for each connection.
 */
#include <errno.h>
#include <stdlib.h>

#include "datapath/warn.h"
#include "internal.h"
#include "making.h"
#include "session/batch.h"
#include "session/rings.h"

/* The completion queue of one direction while it is being created. */
struct own_cq {
	uint32_t entries; /* requested entries; 0: none is created */
	struct urdma_channel *channel;
	struct urdma_cq *cq;
	uint32_t first; /* index of the first of its two requests in the batch */
};

struct making {
	struct own_cq send, recv;
	struct urdma_qp *qp;
	uint32_t pair; /* index of its request in the batch; the requests that modify it follow */
	struct urdma_batch batch;
};

static int allocate_cq(struct ibv_context *context, struct own_cq *own, void *cq_context)
{
	if (!own->entries)
		return 0;
	own->channel = urdma_channel_new(context);
	if (!own->channel)
		return ENOMEM;
	own->cq = urdma_cq_new(context, own->entries, cq_context, &own->channel->channel, 0);
	return own->cq ? 0 : errno;
}

/* Frees objects that urdmad did not create or has destroyed. */
static void discard_cq(struct own_cq *own)
{
	if (own->cq)
		urdma_cq_discard(own->cq);
	if (own->channel)
		urdma_channel_discard(own->channel);
}

static void discard(struct making *m)
{
	if (m->qp)
		urdma_qp_discard(m->qp);
	discard_cq(&m->send);
	discard_cq(&m->recv);
}

static int allocate(struct ibv_context *context, struct making *m, struct urdma_queues *wanted)
{
	struct ibv_qp_init_attr_ex *attr = wanted->attr;
	int status = allocate_cq(context, &m->recv, wanted->cq_context);

	if (!status)
		status = allocate_cq(context, &m->send, wanted->cq_context);
	if (status)
		return status;
	if (m->recv.cq)
		attr->recv_cq = urdma_cq_ibv(m->recv.cq);
	if (m->send.cq)
		attr->send_cq = urdma_cq_ibv(m->send.cq);
	m->qp = urdma_qp_new(context, attr);
	return m->qp ? 0 : errno;
}

/* Until urdmad has answered, the handles refer to earlier requests of the batch. */
static void add_cq(struct urdma_batch *batch, struct own_cq *own)
{
	struct urdma_abi_handle channel;
	struct urdma_abi_create_cq cq;

	if (!own->entries)
		return;
	own->first = batch->count;
	channel = (struct urdma_abi_handle){ .handle = urdma_context_of(own->cq->ex.context)->handle };
	own->channel->handle = urdma_batch_add(batch, URDMA_ABI_CREATE_CHANNEL, &channel, sizeof(channel));
	urdma_cq_request(own->cq, own->entries, 0, &cq);
	own->cq->ex.handle = urdma_batch_add(batch, URDMA_ABI_CREATE_CQ, &cq, sizeof(cq));
}

static int add_requests(struct making *m, const struct urdma_queues *wanted)
{
	struct ibv_qp *ibv = &m->qp->ex.qp_base;
	struct urdma_abi_create_qp create;
	struct urdma_abi_modify_qp modify;
	int status = 0;

	urdma_batch_init(&m->batch);
	add_cq(&m->batch, &m->recv);
	add_cq(&m->batch, &m->send);
	m->pair = m->batch.count;
	urdma_qp_request(m->qp, wanted->attr, &create);
	ibv->handle = urdma_batch_add(&m->batch, URDMA_ABI_CREATE_QP, &create, sizeof(create));
	for (unsigned i = 0; i < wanted->moves && !status; i++) {
		status = urdma_qp_modification(ibv, &wanted->move[i].attr, wanted->move[i].mask, &modify);
		if (!status)
			urdma_batch_add(&m->batch, URDMA_ABI_MODIFY_QP, &modify, sizeof(modify));
	}
	return status;
}

static int take_cq(struct urdma_batch *batch, struct own_cq *own)
{
	struct urdma_abi_handle channel;
	struct urdma_abi_cq_response cq;
	int status;

	if (!own->entries)
		return 0;
	status = urdma_batch_answer(batch, own->first, &channel, sizeof(channel));
	if (!status)
		status = urdma_batch_answer(batch, own->first + 1, &cq, sizeof(cq));
	if (!status && batch->fds[own->first] < 0)
		status = EPROTO;
	if (status)
		return status;
	own->channel->handle = channel.handle;
	own->channel->channel.fd = batch->fds[own->first]; /* removed from the batch once everything has succeeded */
	return urdma_cq_made(own->cq, &cq, urdma_batch_take(batch, own->first + 1));
}

static int take_pair(struct making *m, const struct urdma_queues *wanted)
{
	struct urdma_abi_qp_response response;
	struct urdma_abi_query_qp_response modified;
	int status = urdma_batch_answer(&m->batch, m->pair, &response, sizeof(response));

	if (!status)
		status = urdma_qp_made(m->qp, &response, urdma_batch_take(&m->batch, m->pair), &wanted->attr->cap);
	for (unsigned i = 0; i < wanted->moves && !status; i++) {
		status = urdma_batch_answer(&m->batch, m->pair + 1 + i, &modified, sizeof(modified));
		if (!status)
			urdma_qp_modified(m->qp, &modified);
	}
	return status;
}

/* Destroys the objects in urdmad and removes them from the handle table. */
static void take_back(struct urdma_client *client, struct making *m)
{
	if (m->send.cq)
		urdma_handles_remove(client, URDMA_KIND_CQ, m->send.cq->ex.handle);
	if (m->recv.cq)
		urdma_handles_remove(client, URDMA_KIND_CQ, m->recv.cq->ex.handle);
	urdma_handles_remove(client, URDMA_KIND_QP, m->qp->ex.qp_base.handle);
	urdma_batch_undo(client, &m->batch);
}

static int ask(struct urdma_client *client, struct making *m, const struct urdma_queues *wanted)
{
	int status = add_requests(m, wanted);

	if (status)
		return status;
	urdma_rings_lock(client);
	status = urdma_batch_call(client, &m->batch);
	if (!status)
		status = take_cq(&m->batch, &m->recv);
	if (!status)
		status = take_cq(&m->batch, &m->send);
	if (!status)
		status = take_pair(m, wanted);
	if (status)
		take_back(client, m);
	urdma_rings_unlock(client);
	return status;
}

static void ready_cq(struct urdma_batch *batch, struct own_cq *own, struct ibv_comp_channel **channel,
	struct ibv_cq **cq)
{
	if (!own->entries)
		return;
	urdma_keep(&own->channel->events, urdma_batch_take(batch, own->first));
	urdma_cq_ready(own->cq);
	*channel = &own->channel->channel;
	*cq = urdma_cq_ibv(own->cq);
}

int urdma_queues_create(struct ibv_context *context, struct urdma_queues *wanted)
{
	struct making m = { .send.entries = wanted->send_entries, .recv.entries = wanted->recv_entries };
	struct ibv_cq *send_cq = wanted->attr->send_cq, *recv_cq = wanted->attr->recv_cq;
	int before = errno, status = allocate(context, &m, wanted);

	errno = before;
	if (!status)
		status = ask(urdma_context_of(context)->client, &m, wanted);
	if (status) {
		discard(&m);
		wanted->attr->send_cq = send_cq;
		wanted->attr->recv_cq = recv_cq;
		return urdma_status(status);
	}
	ready_cq(&m.batch, &m.recv, &wanted->recv_channel, &wanted->recv_cq);
	ready_cq(&m.batch, &m.send, &wanted->send_channel, &wanted->send_cq);
	urdma_qp_ready(m.qp, wanted->attr);
	wanted->qp = &m.qp->ex.qp_base;
	return 0;
}

/* ---- destroying ---------------------------------------------------------------- */

/* Returns whether no other queue pair completes on the queue. */
static bool only_user(struct ibv_cq *ibv, const struct urdma_qp *qp)
{
	struct urdma_cq *cq = urdma_cq_of(ibv);
	int taken = urdma_lock_take(&cq->lock);
	bool only = (!cq->senders || (cq->senders == qp && !qp->next_sender)) &&
		    (!cq->receivers || (cq->receivers == qp && !qp->next_receiver));

	urdma_lock_drop(&cq->lock, taken);
	return only;
}

/* Returns whether a queue is the only one of its channel. */
static bool only_queue(struct ibv_comp_channel *ibv, struct ibv_cq *cq)
{
	struct urdma_channel *channel = urdma_channel_of(ibv);
	bool only;

	pthread_mutex_lock(&channel->lock);
	only = channel->cqs == urdma_cq_of(cq) && channel->channel.refcnt == 1;
	pthread_mutex_unlock(&channel->lock);
	return only;
}

static bool own(const struct ibv_qp *qp, struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
	if (!cq || !channel)
		return !cq && !channel;
	return cq->channel == channel && only_user(cq, urdma_qp_of(qp)) && only_queue(channel, cq);
}

static void add_destroy(struct urdma_batch *batch, enum urdma_abi_type type, uint32_t handle)
{
	struct urdma_abi_handle request = { .handle = handle };

	urdma_batch_add(batch, type, &request, sizeof(request));
}

/* Removes the handles, so that no event finds the objects, and adds the requests that destroy them. */
static void leave_cq(struct urdma_client *client, struct urdma_batch *batch, struct ibv_comp_channel *channel,
	struct ibv_cq *cq)
{
	if (!cq)
		return;
	urdma_handles_remove(client, URDMA_KIND_CQ, cq->handle);
	urdma_readers_abandon(&urdma_channel_of(channel)->readers);
	add_destroy(batch, URDMA_ABI_DESTROY_CQ, cq->handle);
	add_destroy(batch, URDMA_ABI_DESTROY_CHANNEL, urdma_channel_of(channel)->handle);
}

/* Frees the objects that urdmad has destroyed: the first so many of channel and queue. */
static void end_cq(struct urdma_client *client, uint32_t destroyed, struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
	if (destroyed > 0)
		urdma_cq_end(urdma_cq_of(cq));
	else
		urdma_handles_add(client, URDMA_KIND_CQ, cq->handle, urdma_cq_of(cq));
	if (destroyed > 1)
		urdma_channel_end(urdma_channel_of(channel));
	else
		urdma_readers_keep(&urdma_channel_of(channel)->readers);
}

static uint32_t above(uint32_t done, uint32_t first)
{
	return done > first ? done - first : 0;
}

/* Records which queues' memory urdmad has back: in a shared file it may give it to another thread's queue
 * at once. */
static void return_memory(uint32_t done, const struct urdma_queues *queues)
{
	if (queues->send_cq)
		urdma_cq_of(queues->send_cq)->returned = above(done, 1) > 0;
	if (queues->recv_cq)
		urdma_cq_of(queues->recv_cq)->returned = above(done, queues->send_cq ? 3 : 1) > 0;
}

static void end_all(struct urdma_client *client, uint32_t done, const struct urdma_queues *queues)
{
	struct urdma_qp *qp = urdma_qp_of(queues->qp);

	return_memory(done, queues);
	if (done)
		urdma_qp_end(qp);
	else
		urdma_handles_add(client, URDMA_KIND_QP, queues->qp->handle, qp);
	if (queues->send_cq)
		end_cq(client, above(done, 1), queues->send_channel, queues->send_cq);
	if (queues->recv_cq)
		end_cq(client, above(done, queues->send_cq ? 3 : 1), queues->recv_channel, queues->recv_cq);
}

/* Returns whether all of them can be destroyed by one message. */
static bool separable(const struct urdma_queues *queues)
{
	const struct ibv_qp *qp = queues->qp;

	return qp->send_cq && qp->recv_cq && (queues->send_cq || queues->recv_cq) &&
	       own(qp, queues->send_channel, queues->send_cq) && own(qp, queues->recv_channel, queues->recv_cq);
}

bool urdma_queues_destroy(struct urdma_queues *queues)
{
	struct urdma_client *client = urdma_qp_of(queues->qp)->client;
	struct urdma_batch batch;
	int before = errno;

	if (queues->recv_cq == queues->send_cq && queues->recv_channel == queues->send_channel) {
		queues->recv_cq = NULL; /* one queue for both directions */
		queues->recv_channel = NULL;
	}
	if (!separable(queues))
		return false;
	if (urdma_warn_wanted)
		urdma_warn_destroys(urdma_qp_of(queues->qp));
	urdma_batch_init(&batch);
	urdma_handles_remove(client, URDMA_KIND_QP, queues->qp->handle);
	add_destroy(&batch, URDMA_ABI_DESTROY_QP, queues->qp->handle);
	leave_cq(client, &batch, queues->send_channel, queues->send_cq);
	leave_cq(client, &batch, queues->recv_channel, queues->recv_cq);
	urdma_batch_call(client, &batch);
	if (!urdma_client_alive(client)) { /* urdmad has ended, and all objects with it */
		batch.done = batch.count;
		errno = before;
	}
	end_all(client, batch.done, queues);
	return true;
}
