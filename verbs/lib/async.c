/* async.c - asynchronous events of a context. */
#include <errno.h>
#include <fcntl.h>

#include "tables.h"

enum element { ELEMENT_NONE, ELEMENT_CQ, ELEMENT_QP, ELEMENT_SRQ };

static enum element element_of(uint32_t event)
{
	switch (event) {
	case IBV_EVENT_CQ_ERR:
		return ELEMENT_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return ELEMENT_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return ELEMENT_SRQ;
	default:
		return ELEMENT_NONE;
	}
}

static bool count_cq(struct urdma_client *client, uint32_t handle, struct ibv_async_event *out)
{
	struct urdma_cq *cq = urdma_handles_find(client, URDMA_KIND_CQ, handle);

	if (!cq)
		return false;
	out->element.cq = urdma_cq_ibv(cq);
	pthread_mutex_lock(&cq->ex.mutex);
	cq->async_events++;
	pthread_mutex_unlock(&cq->ex.mutex);
	return true;
}

static bool count_qp(struct urdma_client *client, uint32_t handle, struct ibv_async_event *out)
{
	struct urdma_qp *qp = urdma_handles_find(client, URDMA_KIND_QP, handle);

	if (!qp)
		return false;
	out->element.qp = &qp->ex.qp_base;
	pthread_mutex_lock(&qp->ex.qp_base.mutex);
	qp->async_events++;
	pthread_mutex_unlock(&qp->ex.qp_base.mutex);
	return true;
}

static bool count_srq(struct urdma_client *client, uint32_t handle, struct ibv_async_event *out)
{
	struct urdma_srq *srq = urdma_handles_find(client, URDMA_KIND_SRQ, handle);

	if (!srq)
		return false;
	out->element.srq = &srq->srq;
	pthread_mutex_lock(&srq->srq.mutex);
	srq->async_events++;
	pthread_mutex_unlock(&srq->srq.mutex);
	return true;
}

/* Names and counts the element; false for an object that is gone: a late event. */
static bool translate(struct urdma_client *client, const struct urdma_abi_async_event *in, struct ibv_async_event *out)
{
	bool known = true;

	out->event_type = (enum ibv_event_type)in->event_type;
	out->element.port_num = (int)in->handle;
	urdma_handles_lock(client);
	if (element_of(in->event_type) == ELEMENT_CQ)
		known = count_cq(client, in->handle, out);
	else if (element_of(in->event_type) == ELEMENT_QP)
		known = count_qp(client, in->handle, out);
	else if (element_of(in->event_type) == ELEMENT_SRQ)
		known = count_srq(client, in->handle, out);
	urdma_handles_unlock(client);
	return known;
}

/* The socket hung up: one IBV_EVENT_DEVICE_FATAL, afterwards EIO. */
static int report_end(struct urdma_context *c, struct ibv_async_event *event)
{
	urdma_client_check(c->client);
	if (__atomic_exchange_n(&c->fatal_reported, true, __ATOMIC_ACQ_REL)) {
		errno = EIO;
		return -1;
	}
	event->event_type = IBV_EVENT_DEVICE_FATAL;
	event->element.port_num = 0;
	return 0;
}

/* 0, or -1 and errno; EBADF on a context that was closed. */
static int next_event(struct urdma_context *c, struct ibv_async_event *event)
{
	struct urdma_abi_async_event message;
	int got;

	do {
		got = urdma_event_read(c->verbs.context.async_fd, &message, sizeof(message));
		if (got < 0)
			return -1;
		if (got == 0 && urdma_readers_abandoned(&c->readers)) {
			errno = EBADF;
			return -1;
		}
		if (got == 0)
			return report_end(c, event);
	} while (!translate(c->client, &message, event));
	return 0;
}

/* The same as a reader, who may be cancelled while waiting. */
static int read_event(struct urdma_context *c, struct ibv_async_event *event, bool *blocking)
{
	int status, error;

	urdma_readers_enter(&c->readers);
	pthread_cleanup_push(urdma_context_leave, c);
	status = next_event(c, event);
	pthread_cleanup_pop(0);
	error = errno;
	*blocking = !(fcntl(c->verbs.context.async_fd, F_GETFL) & O_NONBLOCK);
	urdma_context_leave(c);
	errno = error;
	return status;
}

URDMA_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	bool blocking;
	int status = read_event(urdma_context_of(context), event, &blocking);

	return status && errno == EBADF ? urdma_readers_sleep(blocking) : status;
}

URDMA_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (element_of(event->event_type)) {
	case ELEMENT_CQ:
		pthread_mutex_lock(&cq->mutex);
		cq->async_events_completed++;
		pthread_cond_signal(&cq->cond);
		pthread_mutex_unlock(&cq->mutex);
		break;
	case ELEMENT_QP:
		pthread_mutex_lock(&qp->mutex);
		qp->events_completed++;
		pthread_cond_signal(&qp->cond);
		pthread_mutex_unlock(&qp->mutex);
		break;
	case ELEMENT_SRQ:
		pthread_mutex_lock(&srq->mutex);
		srq->events_completed++;
		pthread_cond_signal(&srq->cond);
		pthread_mutex_unlock(&srq->mutex);
		break;
	default:
		break;
	}
}
