/* async.c - asynchronous events of a context. */
#include <errno.h>
#include <fcntl.h>

#include "tables.h"

/* Returns the kind of object that an event concerns, or -1. */
static int kind_of(uint32_t event)
{
	switch (event) {
	case IBV_EVENT_CQ_ERR:
		return URDMA_KIND_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return URDMA_KIND_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return URDMA_KIND_SRQ;
	default:
		return -1;
	}
}

static struct urdma_events *events_of(int kind, void *object)
{
	if (kind == URDMA_KIND_CQ)
		return &urdma_cq_of(object)->async;
	return kind == URDMA_KIND_QP ? &urdma_qp_of(object)->async : &urdma_srq_of(object)->async;
}

/* Replaces the handle in the message by the object, and counts the event for it. Returns false if the
 * object no longer exists: the event is late. */
static bool translate(struct urdma_client *client, const struct urdma_abi_async_event *in, struct ibv_async_event *out)
{
	int kind = kind_of(in->event_type);
	void *object;

	out->event_type = (enum ibv_event_type)in->event_type;
	out->element.port_num = (int)in->handle;
	if (kind < 0)
		return true;
	urdma_handles_lock(client);
	object = urdma_handles_find(client, (enum urdma_kind)kind, in->handle);
	if (object) {
		out->element.cq = object; /* also right for QPs and SRQs: our structures begin with the one of verbs.h */
		urdma_events_deliver(events_of(kind, object));
	}
	urdma_handles_unlock(client);
	return object != NULL;
}

/* urdmad has closed the socket: reports IBV_EVENT_DEVICE_FATAL once, then fails with EIO. */
static int report_end(struct urdma_context *c, struct ibv_async_event *event)
{
	urdma_client_check(c->client);
	if (__atomic_exchange_n(&c->fatal_reported, true, __ATOMIC_ACQ_REL))
		return urdma_fail(EIO);
	event->event_type = IBV_EVENT_DEVICE_FATAL;
	event->element.port_num = 0;
	return 0;
}

/* Returns 0, or -1 with errno set: EBADF if the context was closed. */
static int next_event(struct urdma_context *c, struct ibv_async_event *event)
{
	struct urdma_abi_async_event message;
	int got;

	do {
		got = urdma_event_read(c->client, &c->events, &message, sizeof(message));
		if (got < 0)
			return -1;
		if (got == 0 && urdma_readers_abandoned(&c->readers))
			return urdma_fail(EBADF);
		if (got == 0)
			return report_end(c, event);
	} while (!translate(c->client, &message, event));
	return 0;
}

/* Calls next_event in a way that allows the thread to be cancelled while it waits. */
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

static void explain(struct urdma_context *c, const struct ibv_async_event *event)
{
	uint32_t qpn = 0;

	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		qpn = event->element.qp->qp_num; /* the queue pair exists until its event is acknowledged */
		break;
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_PORT_ERR:
		break;
	default:
		return;
	}
	urdma_explain(c->client, qpn, URDMA_ABI_EXPLAIN_EVENT + (uint32_t)event->event_type);
}

URDMA_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	bool blocking;
	int status = read_event(urdma_context_of(context), event, &blocking);

	if (status == 0 && urdma_explain_wanted)
		explain(urdma_context_of(context), event);
	return status && errno == EBADF ? urdma_readers_sleep(blocking) : status;
}

URDMA_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	int kind = kind_of(event->event_type);

	if (kind >= 0)
		urdma_events_acknowledge(events_of(kind, event->element.cq), 1);
}
