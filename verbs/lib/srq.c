/* srq.c - creates, modifies and destroys shared receive queues. Posting is in datapath/post.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "session/rings.h"
#include "tables.h"

/* Maps the ring named in a response and unmaps the earlier one, whose indices are kept. Closes the
 * descriptor in any case. */
static int attach(struct urdma_srq *srq, const struct urdma_abi_srq_response *r, int fd)
{
	struct urdma_queue *q = &srq->queue;
	const struct urdma_abi_queue_layout *layout = &r->rq;
	struct urdma_abi_rq_ring *head;
	void *at = NULL;
	int status = EPROTO;

	if (layout->entries && urdma_queue_fits(layout, r->bytes, r->max_wr, sizeof(*head),
						  sizeof(struct urdma_abi_rqe) + r->max_sge * sizeof(struct urdma_abi_sge)))
		status = urdma_map_shared(fd, r->bytes, &at);
	urdma_close(fd);
	if (status)
		return status;
	if (srq->ring)
		munmap(srq->ring, srq->bytes);
	srq->ring = at;
	srq->bytes = r->bytes;
	head = (void *)((uint8_t *)at + layout->head_offset);
	q->depth = r->max_wr;
	q->mask = layout->entries - 1;
	q->stride = layout->stride;
	q->max_sge = r->max_sge;
	q->slots = (uint8_t *)at + layout->slots_offset;
	q->shared_prod = &head->prod;
	q->shared_cons = &head->cons;
	q->free_when_taken = true;
	return 0;
}

static int ask_for_ring(struct urdma_srq *srq, struct ibv_srq_attr *attr, struct urdma_abi_create_srq request)
{
	struct urdma_abi_srq_response response;
	int fd, status;

	request.pd = srq->srq.pd->handle;
	request.max_wr = attr->max_wr;
	request.max_sge = attr->max_sge;
	request.srq_limit = attr->srq_limit;
	status = urdma_call_fds(srq->client, URDMA_ABI_CREATE_SRQ, &request, sizeof(request), &response,
				sizeof(response), -1, &fd, 1);
	if (status)
		return status;
	srq->srq.handle = response.handle;
	srq->number = response.srq_num;
	status = attach(srq, &response, fd);
	if (!status)
		status = urdma_handles_add(srq->client, URDMA_KIND_SRQ, response.handle, srq);
	if (status)
		urdma_call_handle(srq->client, URDMA_ABI_DESTROY_SRQ, response.handle);
	attr->max_wr = response.max_wr;
	attr->max_sge = response.max_sge;
	return status;
}

static void discard(struct urdma_srq *srq)
{
	if (srq->ring)
		munmap(srq->ring, srq->bytes);
	pthread_mutex_destroy(&srq->srq.mutex);
	pthread_cond_destroy(&srq->srq.cond);
	free(srq);
}

/* like: the other attributes of the request, in addition to domain and sizes. */
static struct ibv_srq *create(struct ibv_pd *pd, void *srq_context, struct ibv_srq_attr *attr,
			      const struct urdma_abi_create_srq *like)
{
	struct urdma_srq *srq = calloc(1, sizeof(*srq));
	int status;

	if (!srq)
		return NULL;
	srq->client = urdma_context_of(pd->context)->client;
	srq->srq.context = pd->context;
	srq->srq.srq_context = srq_context;
	srq->srq.pd = pd;
	pthread_mutex_init(&srq->srq.mutex, NULL);
	pthread_cond_init(&srq->srq.cond, NULL);
	srq->async = (struct urdma_events){ &srq->srq.mutex, &srq->srq.cond, &srq->srq.events_completed, 0 };
	status = ask_for_ring(srq, attr, *like);
	if (status) {
		discard(srq);
		return urdma_null(status);
	}
	return &srq->srq;
}

URDMA_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	return create(pd, init->srq_context, &init->attr, &(struct urdma_abi_create_srq){ .srq_type = IBV_SRQT_BASIC });
}

/* verbs.h calls ibv_create_srq for basic queues without further attributes. */
struct ibv_srq *urdma_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	uint32_t needed = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	struct urdma_abi_create_srq like = { .srq_type = IBV_SRQT_XRC };
	bool matches_tags = (attr->comp_mask & IBV_SRQ_INIT_ATTR_TM) || attr->srq_type == IBV_SRQT_TM;

	(void)context;
	if (attr->comp_mask != needed || attr->srq_type != IBV_SRQT_XRC || !attr->pd || !attr->xrcd || !attr->cq)
		return urdma_null(matches_tags ? EOPNOTSUPP : EINVAL);
	like.xrcd = urdma_xrcd_handle(attr->xrcd);
	like.cq = attr->cq->handle;
	return create(attr->pd, attr->srq_context, &attr->attr, &like);
}

int urdma_get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	if (!urdma_srq_of(srq)->number)
		return urdma_status(EINVAL);
	*number = urdma_srq_of(srq)->number;
	return 0;
}

/* With the lock held, so that no thread posts while urdmad moves the receives. */
static int change_ring(struct urdma_srq *srq, struct urdma_abi_modify_srq *request)
{
	struct urdma_abi_srq_response response;
	int fd, status = urdma_call_room(srq->client);

	if (!status)
		status = urdma_call_fds(srq->client, URDMA_ABI_RESIZE_SRQ, request, sizeof(*request), &response,
					sizeof(response), -1, &fd, 1);
	if (status)
		return status;
	status = attach(srq, &response, fd);
	if (status)
		urdma_client_lose(srq->client, "no memory for a queue that urdmad has moved");
	return status;
}

static int resize(struct urdma_srq *srq, struct urdma_abi_modify_srq *request)
{
	int before = errno, taken = urdma_lock_take(&srq->queue.lock), status = change_ring(srq, request);

	urdma_lock_drop(&srq->queue.lock, taken);
	if (!status)
		errno = before; /* contention for the lock may have set errno */
	return status;
}

URDMA_EXPORT int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct urdma_abi_modify_srq request = { .handle = ibv->handle, .mask = (uint32_t)mask, .max_wr = attr->max_wr,
						.srq_limit = attr->srq_limit };
	struct urdma_srq *srq = urdma_srq_of(ibv);
	int status;

	if (mask & IBV_SRQ_MAX_WR)
		status = resize(srq, &request);
	else
		status = URDMA_TELL(srq->client, URDMA_ABI_MODIFY_SRQ, &request);
	return urdma_status(status);
}

URDMA_EXPORT int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct urdma_abi_handle request = { .handle = ibv->handle };
	struct urdma_abi_query_srq_response response;
	int status = URDMA_ASK(urdma_srq_of(ibv)->client, URDMA_ABI_QUERY_SRQ, &request, &response);

	if (!status)
		*attr = (struct ibv_srq_attr){ response.max_wr, response.max_sge, response.srq_limit };
	return urdma_status(status);
}

/* EBUSY while a queue pair uses it; urdmad counts them. */
URDMA_EXPORT int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct urdma_srq *srq = urdma_srq_of(ibv);
	int status = urdma_handles_destroy(srq->client, URDMA_KIND_SRQ, URDMA_ABI_DESTROY_SRQ, ibv->handle, srq);

	if (status)
		return status;
	urdma_events_wait(srq->client, &srq->async);
	discard(srq);
	return 0;
}
