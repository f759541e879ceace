/*
 * migrate.c - moving an id to another event channel, or to synchronous
 * operation on a channel of its own.
 *
 * What lies unread in the old channel belongs to the id and comes first on the
 * new one. Everything is read out of the old socket; what is others' stays
 * pending there, and either channel's socket is made readable again.
 */
#include <errno.h>

#include "cm.h"

/* Takes all that is unread off a channel, in order; cm_lock held. */
static void take_all(struct cm_channel *from, struct cm_pendings *all)
{
	struct urdma_abi_cm_event message;
	struct cm_pending *one;

	while (cm_channel_poll(from, &message) == 0) {
		one = cm_pending_new(&message);
		if (one)
			STAILQ_INSERT_TAIL(all, one, next);
	}
}

/* Brings the id's events, in order, before those that are pending on its new
 * channel, and puts the others back. Both channels' sockets are read only while
 * nothing is pending. */
static void carry_over(struct cm_id *id, struct cm_channel *from, struct cm_channel *to)
{
	struct cm_pendings unread = STAILQ_HEAD_INITIALIZER(unread), newer = STAILQ_HEAD_INITIALIZER(newer);
	struct cm_pending *one;

	take_all(from, &unread);
	STAILQ_CONCAT(&newer, &to->pending);
	while ((one = STAILQ_FIRST(&unread))) {
		STAILQ_REMOVE_HEAD(&unread, next);
		STAILQ_INSERT_TAIL(one->message.id == id->handle ? &to->pending : &from->pending, one, next);
	}
	STAILQ_CONCAT(&to->pending, &id->arrived); /* what came there meanwhile */
	STAILQ_CONCAT(&to->pending, &newer);
}

static void wake_if_pending(struct cm_channel *channel)
{
	bool pending;
	int cancel;

	cm_lock(&cancel);
	pending = !STAILQ_EMPTY(&channel->pending);
	cm_unlock(cancel);
	if (pending)
		cm_channel_wake(channel);
}

/* Switches the id's channel once urdmad sends its events to the new one. */
static void adopt(struct cm_id *id, struct rdma_event_channel *channel, bool sync)
{
	struct rdma_event_channel *old = id->public.channel;
	bool was_sync = id->sync;
	int cancel;

	cm_lock(&cancel);
	id->moving = NULL;
	id->migrated = true;
	id->public.channel = channel;
	id->sync = sync;
	carry_over(id, cm_channel_of(old), cm_channel_of(channel));
	cm_unlock(cancel);
	if (was_sync)
		cm_drop_event(&id->public);
	wake_if_pending(cm_channel_of(channel));
	if (!was_sync)
		wake_if_pending(cm_channel_of(old));
	cm_id_wait_acknowledged(id);
	if (was_sync)
		rdma_destroy_event_channel(old);
}

/* Tells urdmad. Newer events wait on the new channel until adopt. */
static int ask(struct cm_id *id, struct cm_channel *channel)
{
	int error, cancel;

	if (channel->client != id->client)
		return ENODEV; /* the id belongs to a urdmad that has ended */
	cm_lock(&cancel);
	id->moving = channel;
	cm_unlock(cancel);
	error = cm_id_call(id, URDMA_ABI_CM_MIGRATE_ID, channel->handle);
	if (!error)
		return 0;
	cm_lock(&cancel);
	id->moving = NULL;
	cm_unlock(cancel);
	return error;
}

URDMA_EXPORT int rdma_migrate_id(struct rdma_cm_id *public,
				 struct rdma_event_channel *channel)
{
	struct cm_id *id = cm_id_of(public);
	bool sync = !channel;
	int error;

	if (id->sync && sync)
		return urdma_fail(EINVAL); /* it has a channel of its own already */
	if (channel == public->channel)
		return 0;
	if (sync) {
		channel = rdma_create_event_channel();
		if (!channel)
			return -1;
	}
	error = ask(id, cm_channel_of(channel));
	if (error) {
		if (sync)
			rdma_destroy_event_channel(channel);
		return urdma_fail(error);
	}
	adopt(id, channel, sync);
	return 0;
}
