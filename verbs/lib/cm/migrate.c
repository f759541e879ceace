/*
 * migrate.c - moves an id to another event channel, or to synchronous operation on a channel of its own.
 *
 * Unread events of the id in the old channel come first on the new one. The old socket is read until it is
 * empty; events of other ids stay pending on the old channel. Afterwards the sockets of both channels are
 * made readable again if they have pending events.
 */
#include <errno.h>

#include "cm.h"

/* Takes all unread messages off a channel, in order; cm_lock is held. */
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

/* Puts the id's events, in order, before the events pending on its new channel, and puts other ids' events
 * back. A channel's socket is read only while it has no pending events. */
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
	STAILQ_CONCAT(&to->pending, &id->arrived); /* events that came on the new channel meanwhile */
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

/* Switches the id to its new channel, once urdmad sends the id's events there. */
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

/* Tells urdmad to move the id. Newer events wait on the new channel until adopt is called. */
static int ask(struct cm_id *id, struct cm_channel *channel)
{
	int error, cancel;

	if (channel->client != id->client)
		return ENODEV; /* the id belongs to a session with a urdmad that has ended */
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
		return urdma_fail(EINVAL); /* a synchronous id already has a channel of its own */
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
