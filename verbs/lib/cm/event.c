/*
 * event.c - turns urdmad's event messages into struct rdma_cm_event, counts acknowledgements, and waits
 * for the event of a synchronous call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"

struct cm_event {
	struct rdma_cm_event public; /* what the program holds */
	struct cm_id *owner;         /* the id for which the event is counted: for a connection request, the listener */
	uint8_t private_data[URDMA_ABI_MAX_PRIVATE];
};

static uint8_t copy_private(struct cm_event *event, const struct urdma_abi_cm_param *from)
{
	size_t length = from->private_data_len;

	if (length > UINT8_MAX)
		length = UINT8_MAX;
	memcpy(event->private_data, from->private_data, length);
	return (uint8_t)length;
}

static void copy_param(struct cm_event *event, const struct urdma_abi_cm_event *message)
{
	const struct urdma_abi_cm_param *from = &message->param;
	struct rdma_conn_param *to = &event->public.param.conn;
	uint8_t length = copy_private(event, from);

	if (cm_is_datagram(&event->owner->public)) {
		cm_datagram_param(&event->owner->public, message, &event->public.param.ud);
		if (message->event == RDMA_CM_EVENT_MULTICAST_JOIN) {
			cm_group_joined(&event->owner->public, message, &event->public.param.ud);
			return;
		}
		event->public.param.ud.private_data = length ? event->private_data : NULL;
		event->public.param.ud.private_data_len = length;
		return;
	}
	to->private_data = length ? event->private_data : NULL;
	to->private_data_len = length;
	to->responder_resources = from->responder_resources;
	to->initiator_depth = from->initiator_depth;
	to->flow_control = from->flow_control;
	to->retry_count = from->retry_count;
	to->rnr_retry_count = from->rnr_retry_count;
	to->srq = from->srq;
	to->qp_num = from->qp_num;
}

static void address_resolved(struct cm_event *event, struct cm_id *id,
			     const struct urdma_abi_cm_event *message)
{
	int error = message->device == URDMA_ABI_NO_DEVICE ? EPROTO : cm_id_attach(id, message->device);

	if (error) {
		event->public.event = RDMA_CM_EVENT_ADDR_ERROR;
		event->public.status = -error;
		return;
	}
	cm_address_local(id, &message->local);
}

static void established(struct cm_event *event, struct cm_id *id)
{
	if (cm_is_datagram(&id->public))
		return;
	id->connected = true;
	cm_qp_moved(id, IBV_QPS_RTS);
	/* An InfiniBand program that made its queue pair itself expects CONNECT_RESPONSE and then calls
	 * rdma_establish; iWARP has no such step. */
	if (id->active && !id->public.qp && id->public.verbs && cm_uses_ibcm(&id->public))
		event->public.event = RDMA_CM_EVENT_CONNECT_RESPONSE;
}

/* Makes the id of a connection request. 0 or an errno value. */
static int connect_request(struct cm_event *event, struct cm_id *listener,
			   const struct urdma_abi_cm_event *message)
{
	struct rdma_cm_id *from = &listener->public;
	struct cm_id *id = cm_id_new(from->channel, from->context, from->ps,
				     from->qp_type, message->child);
	int error;

	if (!id)
		return ENOMEM;
	id->responder_resources = message->param.responder_resources;
	id->initiator_depth = message->param.initiator_depth;
	id->peer_qp_num = message->param.qp_num;
	cm_address_write(&message->local, &id->public.route.addr.src_addr);
	cm_address_write(&message->peer, &id->public.route.addr.dst_addr);
	error = message->device == URDMA_ABI_NO_DEVICE ? EPROTO : cm_id_attach(id, message->device);
	if (!error && listener->sync && rdma_migrate_id(&id->public, NULL))
		error = errno;
	/* urdmad created the new id on the channel that the listener had then */
	if (!error && !listener->sync && listener->migrated)
		error = cm_id_call(id, URDMA_ABI_CM_MIGRATE_ID, cm_channel_of(from->channel)->handle);
	if (error) {
		cm_id_free(id);
		return error;
	}
	event->public.id = &id->public;
	event->public.listen_id = from;
	return 0;
}

static void ended(struct cm_id *id)
{
	id->connected = false;
	cm_qp_moved(id, IBV_QPS_ERR);
}

/* Programs use the device of an id without a look at it, once an event says that the id must have one. */
static bool possible(const struct cm_id *id, uint32_t event)
{
	switch (event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return true;
	default:
		return id->public.verbs && event <= RDMA_CM_EVENT_TIMEWAIT_EXIT;
	}
}

/* Changes this side's state as each kind of event requires. Returns 0, or an errno value if the event must
 * be dropped. */
static int apply(struct cm_event *event, const struct urdma_abi_cm_event *message)
{
	struct cm_id *id = event->owner;

	if (!possible(id, message->event)) {
		urdma_client_lose(id->client, "an event that is not the id's");
		return EPROTO;
	}
	switch (message->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		address_resolved(event, id, message);
		return 0;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return connect_request(event, id, message);
	case RDMA_CM_EVENT_ESTABLISHED:
		id->peer_qp_num = message->param.qp_num ? message->param.qp_num : id->peer_qp_num;
		established(event, id);
		return 0;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
		ended(id);
		return 0;
	default:
		return 0;
	}
}

/* Returns the size of the private data field in InfiniBand's message for this event, which is reported in
 * full whatever the peer filled in. Returns 0 if the message has none. */
static uint8_t private_room(const struct rdma_cm_event *event)
{
	struct cm_id *id = cm_id_of(event->id);
	bool datagram = cm_is_datagram(event->id);

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return datagram ? CM_LOOKUP : CM_REQUEST;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_ESTABLISHED:
		return !id->active ? 0 : datagram ? CM_FOUND : CM_REPLY;
	case RDMA_CM_EVENT_REJECTED:
		return CM_REJECT;
	default:
		return 0;
	}
}

/* Extends private data with zeros to the length that an InfiniBand adapter would report
 * (rdma_get_cm_event(3): it may be longer than the data that the peer gave). */
static void pad_private(struct cm_event *event)
{
	struct rdma_cm_event *public = &event->public;
	uint8_t room;

	if (!public->id->verbs || !cm_uses_ibcm(public->id))
		return;
	room = private_room(public);
	if (cm_is_datagram(public->id) && public->param.ud.private_data_len < room) {
		public->param.ud.private_data = event->private_data;
		public->param.ud.private_data_len = room;
	} else if (!cm_is_datagram(public->id) && public->param.conn.private_data_len < room) {
		public->param.conn.private_data = event->private_data;
		public->param.conn.private_data_len = room;
	}
}

/* Returns the id to which a message belongs and counts the event, so that rdma_destroy_id waits for its
 * acknowledgement. Returns NULL if the id is unknown, or if the message was passed on: to the channel that
 * the id was migrated to, which is stored in *late; or, while rdma_migrate_id moves the id to this
 * channel, to the list of events that arrived early. */
static struct cm_id *claim(struct cm_channel *channel,
			   const struct urdma_abi_cm_event *message,
			   struct cm_channel **late)
{
	struct cm_id *id = cm_id_find(channel->client, message->id);
	struct cm_pending *pending;
	struct cm_channel *own;

	if (!id) {
		cm_orphan(channel, message);
		return NULL;
	}
	own = cm_channel_of(id->public.channel);
	if (id->moving == channel) {
		pending = cm_pending_new(message);
		if (pending)
			STAILQ_INSERT_TAIL(&id->arrived, pending, next);
		return NULL;
	}
	if (own != channel && !id->moving) {
		cm_channel_push(own, message);
		*late = own;
		return NULL;
	}
	id->reported++;
	return id;
}

/* Returns the status of a refusal: InfiniBand's reason from a REJ or SIDR_REP message
 * (rdma_get_cm_event(3)) if the device is shown as one that has these messages. */
static int status_of(const struct cm_id *id, int status)
{
	if (status < 0)
		return status < -4095 ? -EPROTO : status;
	if (status > 0 && (!id->public.verbs || id->public.verbs->device->transport_type != IBV_TRANSPORT_IB))
		return -ECONNREFUSED;
	return status;
}

/* Turns a message into an event. Returns false if this channel has no event to return for it. */
static bool deliver(struct cm_channel *channel, struct cm_event *event,
		    const struct urdma_abi_cm_event *message)
{
	struct cm_channel *late = NULL;
	int cancel;

	memset(event, 0, sizeof(*event));
	cm_lock(&cancel);
	event->owner = claim(channel, message, &late);
	cm_unlock(cancel);
	if (!event->owner) {
		cm_orphans_release();
		if (late)
			cm_channel_wake(late);
		return false;
	}
	event->public.id = &event->owner->public;
	event->public.event = message->event;
	event->public.status = status_of(event->owner, message->status);
	copy_param(event, message);
	if (apply(event, message) == 0) {
		pad_private(event);
		return true;
	}
	if (message->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		urdma_call_handle(channel->client, URDMA_ABI_CM_DESTROY_ID,
				  message->child);
	cm_id_acknowledge(event->owner);
	return false;
}

/* Prints on stderr why a connection was not made. */
static void explain(struct urdma_client *client, enum rdma_cm_event_type event)
{
	switch (event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		urdma_explain(client, 0, URDMA_ABI_EXPLAIN_CONNECTION);
	default:
		return;
	}
}

/* Takes the next event without waiting. Returns 0 or an errno value; EAGAIN if there is none or another
 * thread took it. */
static int next_event(struct cm_channel *channel, struct cm_event **result)
{
	struct cm_event *event = malloc(sizeof(*event));
	struct urdma_abi_cm_event message;
	int error, cancel;

	if (!event)
		return ENOMEM;
	do {
		cm_lock(&cancel);
		error = cm_channel_poll(channel, &message);
		cm_unlock(cancel);
	} while (!error && !deliver(channel, event, &message));
	if (error) {
		free(event);
		return error;
	}
	*result = event;
	if (urdma_explain_wanted)
		explain(channel->client, event->public.event);
	return 0;
}

/* Waits for an event, as a reader of the channel. */
static int wait_event(struct cm_channel *channel, struct cm_event **event)
{
	int error, cancel;

	do {
		error = cm_channel_wait(channel);
		if (error)
			return error;
		/* A thread must not be cancelled after it has taken a message. */
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		error = next_event(channel, event);
		pthread_setcancelstate(cancel, NULL);
	} while (error == EAGAIN);
	return error;
}

URDMA_EXPORT int rdma_get_cm_event(struct rdma_event_channel *public,
				   struct rdma_cm_event **result)
{
	struct cm_event *event;
	int error;

	if (!public || !result)
		return urdma_fail(EINVAL);
	if (urdma_readers_abandoned(&cm_channel_of(public)->readers))
		return urdma_readers_sleep(true);
	urdma_readers_enter(&cm_channel_of(public)->readers);
	error = wait_event(cm_channel_of(public), &event);
	cm_channel_leave(cm_channel_of(public));
	if (error)
		return urdma_fail(error);
	*result = &event->public;
	return 0;
}

URDMA_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *public)
{
	struct cm_event *event = (struct cm_event *)public;

	if (!public)
		return urdma_fail(EINVAL);
	cm_id_acknowledge(event->owner);
	free(event);
	return 0;
}

void cm_drop_event(struct rdma_cm_id *id)
{
	if (id->event)
		rdma_ack_cm_event(id->event);
	id->event = NULL;
}

/* Returns the result of the call that an event completes: 0 or an errno value. */
static int outcome(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return ENODEV;
	if (!event->status)
		return 0;
	return event->status > 0 ? ECONNREFUSED : -event->status;
}

int cm_complete(struct cm_id *id, int error)
{
	struct rdma_cm_id *public = &id->public;

	if (error || !id->sync)
		return cm_result(error);
	cm_drop_event(public);
	if (rdma_get_cm_event(public->channel, &public->event))
		return -1;
	return cm_result(outcome(public->event));
}
