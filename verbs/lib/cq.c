/* cq.c - completion queues: creation, resizing, arming, destruction. Polling is in poll.c and pollex.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "making.h"
#include "memory/memory.h"
#include "session/rings.h"
#include "tables.h"

#define WC_FLAGS_SUPPORTED                                                                              \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                                  \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/* Maps the ring named in a response. The descriptor, if the response had one, is closed in any case. */
static int attach(struct urdma_cq *cq, const struct urdma_abi_cq_response *r, int fd)
{
	uint32_t most = urdma_context_of(cq->ex.context)->info->max_cqe;
	void *base;
	uint8_t *at;
	size_t need = (size_t)r->ring_offset + r->entries_offset + (size_t)r->entries * sizeof(struct urdma_abi_cqe);
	int status = EPROTO;

	if (r->entries && !(r->entries & (r->entries - 1)) && !((r->ring_offset | r->entries_offset) % sizeof(uint64_t)) &&
	    need <= r->bytes && (r->memfd || !r->ring_offset))
		status = urdma_rings_map(cq->client, r->memfd, r->bytes, fd, &base);
	if (fd >= 0)
		urdma_close(fd);
	if (status)
		return status;
	at = (uint8_t *)base + r->ring_offset;
	cq->ring = (struct urdma_abi_cq_ring *)at;
	cq->bytes = r->bytes;
	cq->memfd = r->memfd;
	cq->entries = (struct urdma_abi_cqe *)(at + r->entries_offset);
	cq->mask = r->entries - 1;
	cq->cons = __atomic_load_n(&cq->ring->cons, __ATOMIC_RELAXED);
	/* a program may ask for the size it was told, rounded up */
	cq->ex.cqe = (int)(r->entries < most ? r->entries : most);
	return 0;
}

void urdma_cq_request(const struct urdma_cq *cq, uint32_t cqe, uint32_t vector, struct urdma_abi_create_cq *request)
{
	const struct urdma_channel *channel = urdma_channel_of(cq->ex.channel);

	*request = (struct urdma_abi_create_cq){
		.context = urdma_context_of(cq->ex.context)->handle, .cqe = cqe, .comp_vector = vector,
		.channel = channel ? channel->handle : URDMA_ABI_NO_HANDLE,
	};
}

int urdma_cq_made(struct urdma_cq *cq, const struct urdma_abi_cq_response *response, int fd)
{
	int status = attach(cq, response, fd);

	cq->ex.handle = response->handle;
	return status ? status : urdma_handles_add(cq->client, URDMA_KIND_CQ, response->handle, cq);
}

static int ask_for_ring(struct urdma_cq *cq, uint32_t cqe, uint32_t vector)
{
	struct urdma_abi_create_cq request;
	struct urdma_abi_cq_response response;
	int fd, status;

	urdma_cq_request(cq, cqe, vector, &request);
	urdma_rings_lock(cq->client);
	status = urdma_rings_call(cq->client, URDMA_ABI_CREATE_CQ, &request, sizeof(request), &response, sizeof(response),
		&fd);
	if (!status) {
		status = urdma_cq_made(cq, &response, fd);
		if (status)
			urdma_call_handle(cq->client, URDMA_ABI_DESTROY_CQ, response.handle);
	}
	urdma_rings_unlock(cq->client);
	return status;
}

void urdma_cq_ready(struct urdma_cq *cq)
{
	struct urdma_channel *channel = urdma_channel_of(cq->ex.channel);

	if (!channel)
		return;
	pthread_mutex_lock(&channel->lock);
	cq->next_in_channel = channel->cqs;
	channel->cqs = cq;
	channel->channel.refcnt++;
	pthread_mutex_unlock(&channel->lock);
}

static void leave_channel(struct urdma_cq *cq)
{
	struct urdma_channel *channel = urdma_channel_of(cq->ex.channel);
	struct urdma_cq **at;

	if (!channel)
		return;
	pthread_mutex_lock(&channel->lock);
	for (at = &channel->cqs; *at != cq; at = &(*at)->next_in_channel)
		;
	*at = cq->next_in_channel;
	channel->channel.refcnt--;
	pthread_mutex_unlock(&channel->lock);
}

void urdma_cq_discard(struct urdma_cq *cq)
{
	if (cq->ring)
		urdma_rings_unmap(cq->client, cq->memfd, cq->ring, cq->bytes);
	pthread_mutex_destroy(&cq->ex.mutex);
	pthread_cond_destroy(&cq->ex.cond);
	free(cq);
}

struct urdma_cq *urdma_cq_new(struct ibv_context *context, uint32_t cqe, void *cq_context,
			      struct ibv_comp_channel *channel, uint32_t vector)
{
	struct urdma_context *c = urdma_context_of(context);
	struct urdma_cq *cq;

	errno = EINVAL;
	if (cqe == 0 || cqe > c->info->max_cqe) {
		errno = urdma_wrong(EINVAL, "ibv_create_cq: cqe is %d, allowed: 1 to %u", (int)cqe, c->info->max_cqe);
		return NULL;
	}
	if (vector >= (uint32_t)context->num_comp_vectors) {
		errno = urdma_wrong(EINVAL, "ibv_create_cq: comp_vector is %d, allowed: 0 to %d", (int)vector,
			context->num_comp_vectors - 1);
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->client = c->client;
	cq->bells = c->client->bells;
	cq->shows_lid = c->info->link_layer == IBV_LINK_LAYER_INFINIBAND;
	cq->shows_header = c->info->transport == URDMA_ABI_TRANSPORT_ROCE;
	cq->ex.context = context;
	cq->ex.channel = channel;
	cq->ex.cq_context = cq_context;
	pthread_mutex_init(&cq->ex.mutex, NULL);
	pthread_cond_init(&cq->ex.cond, NULL);
	cq->completions = (struct urdma_events){ &cq->ex.mutex, &cq->ex.cond, &cq->ex.comp_events_completed, 0 };
	cq->async = (struct urdma_events){ &cq->ex.mutex, &cq->ex.cond, &cq->ex.async_events_completed, 0 };
	return cq;
}

static struct urdma_cq *make(struct ibv_context *context, uint32_t cqe, void *cq_context,
			     struct ibv_comp_channel *channel, uint32_t vector)
{
	int before = errno, status;
	struct urdma_cq *cq = urdma_cq_new(context, cqe, cq_context, channel, vector);

	if (!cq)
		return NULL;
	errno = before;
	status = ask_for_ring(cq, cqe, vector);
	if (status) {
		urdma_cq_discard(cq);
		return urdma_null(status);
	}
	urdma_cq_ready(cq);
	return cq;
}

URDMA_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
					  struct ibv_comp_channel *channel, int comp_vector)
{
	struct urdma_cq *cq = make(context, cqe > 0 ? (uint32_t)cqe : 0, cq_context, channel, (uint32_t)comp_vector);

	return cq ? urdma_cq_ibv(cq) : NULL;
}

struct ibv_cq_ex *urdma_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	struct urdma_cq *cq;

	errno = EOPNOTSUPP;
	if ((attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) ||
	    (attr->wc_flags & ~(uint64_t)WC_FLAGS_SUPPORTED) ||
	    (flags & ~(uint32_t)(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)))
		return NULL;
	errno = EINVAL;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) && !urdma_pd_is_parent(attr->parent_domain, context))
		return NULL;
	cq = make(context, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector);
	if (!cq)
		return NULL;
	cq->ignore_overrun = flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	urdma_pollex_fill(&cq->ex, attr->wc_flags);
	return &cq->ex;
}

/* With the lock held, so that no thread polls while urdmad moves unpolled completions. */
static int change_ring(struct urdma_cq *cq, uint32_t cqe)
{
	struct urdma_abi_resize_cq request = { .handle = cq->ex.handle, .cqe = cqe };
	struct urdma_abi_cq_response response;
	struct urdma_abi_cq_ring *old = cq->ring;
	size_t old_bytes = cq->bytes;
	uint32_t old_memfd = cq->memfd;
	int fd, status = urdma_call_room(cq->client);

	if (!status)
		status = urdma_call_fds(cq->client, URDMA_ABI_RESIZE_CQ, &request, sizeof(request), &response,
					sizeof(response), -1, &fd, 1);
	if (status)
		return status;
	status = response.memfd ? EPROTO : attach(cq, &response, fd);
	if (status)
		urdma_client_lose(cq->client, "no memory for a queue that urdmad has moved");
	else
		urdma_rings_unmap(cq->client, old_memfd, old, old_bytes);
	return status;
}

URDMA_EXPORT int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct urdma_cq *cq = urdma_cq_of(ibv);
	int before = errno, taken, status;

	if (cqe < 1 || (uint32_t)cqe > urdma_context_of(ibv->context)->info->max_cqe)
		return urdma_status(EINVAL);
	taken = urdma_lock_take(&cq->lock);
	status = change_ring(cq, (uint32_t)cqe);
	urdma_lock_drop(&cq->lock, taken);
	if (!status)
		errno = before; /* contention for the lock may have set errno */
	return status;
}

/*
 * The store is sequentially consistent and precedes the caller's next poll. urdmad stores prod before it
 * reads arm: so either urdmad sees the queue armed and sends an event, or that poll sees the completion. 2
 * (any completion) is never lowered to 1.
 */
static void arm(struct urdma_cq *cq, int solicited_only)
{
	uint32_t nothing = 0;

	if (!solicited_only)
		__atomic_store_n(&cq->ring->arm, 2, __ATOMIC_SEQ_CST);
	else
		__atomic_compare_exchange_n(&cq->ring->arm, &nothing, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Returns whether completions wait for which no event was sent. The index told may be far behind. */
static bool has_unannounced(const struct urdma_cq *cq)
{
	uint32_t prod = __atomic_load_n(&cq->ring->prod, __ATOMIC_ACQUIRE);
	uint32_t told = __atomic_load_n(&cq->ring->told, __ATOMIC_RELAXED);

	return prod != cq->cons && prod - told >= prod - cq->cons;
}

/*
 * A program that polls, arms and then waits (Open MPI's openib) gets an event for completions that came in
 * between, as from other adapters (urdma_abi.h); ibv_req_notify_cq(3) does not promise one.
 */
void urdma_cq_tell_missed(struct urdma_cq *cq)
{
	struct urdma_qp *qp = cq->receivers ? cq->receivers : cq->senders;

	if (!cq->ex.channel || !qp || !has_unannounced(cq) || __atomic_load_n(&cq->ring->arm, __ATOMIC_RELAXED) != 2)
		return;
	/* During an extended poll ring->cons is not up to date. */
	__atomic_store_n(&cq->ring->cons, cq->cons, __ATOMIC_RELEASE);
	urdma_ring_doorbell(qp);
}

/* The lock is taken because ibv_resize_cq replaces the ring and copies the arming. Between ibv_start_poll
 * and ibv_end_poll this thread holds it already. */
int urdma_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct urdma_cq *cq = urdma_cq_of(ibv);
	int taken;

	if (urdma_client_state(cq->client) == URDMA_CLIENT_FORKED)
		return EIO;
	taken = URDMA_LOAD(cq->poller) == pthread_self() ? 0 : urdma_lock_take(&cq->lock);
	arm(cq, solicited_only);
	if (!solicited_only)
		urdma_cq_tell_missed(cq);
	urdma_lock_drop(&cq->lock, taken);
	return 0;
}

void urdma_cq_end(struct urdma_cq *cq)
{
	leave_channel(cq);
	urdma_events_wait(cq->client, &cq->completions);
	urdma_events_wait(cq->client, &cq->async);
	urdma_cq_discard(cq);
}

URDMA_EXPORT int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct urdma_cq *cq = urdma_cq_of(ibv);
	int taken = urdma_lock_take(&cq->lock);
	bool used = cq->senders || cq->receivers;
	int status;

	urdma_lock_drop(&cq->lock, taken);
	if (used)
		return urdma_status(EBUSY);
	status = urdma_handles_destroy(cq->client, URDMA_KIND_CQ, URDMA_ABI_DESTROY_CQ, ibv->handle, cq);
	if (!status)
		urdma_cq_end(cq);
	return status;
}
