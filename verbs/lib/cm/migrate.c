/*
 * migrate.c - moving an id to another event channel, or to synchronous
 * operation on a channel of its own.
 */
#include <errno.h>

#include "cm.h"

/*
 * A synchronous id's old channel ends with the migration: what lies unread in
 * it belongs to the id and comes first on the new one. From a channel that
 * lives on, the old channel's reader returns such events.
 */
static void carry_over(struct cm_id *id, struct cm_channel *from,
		       struct cm_channel *to)
{
	struct urdma_abi_cm_event message;
	int cancel;

	cm_lock(&cancel);
	while (cm_channel_poll(from, &message) == 0)
		if (cm_id_find(id->client, message.id))
			cm_channel_push(to, &message);
	cm_unlock(cancel);
}

/* Switches the id's channel once urdmad sends its events to the new one. */
static void adopt(struct cm_id *id, struct rdma_event_channel *channel, bool sync)
{
	struct rdma_event_channel *old = id->public.channel;
	bool was_sync = id->sync;
	int cancel;

	cm_lock(&cancel);
	id->public.channel = channel;
	id->sync = sync;
	cm_unlock(cancel);
	if (was_sync) {
		cm_drop_event(&id->public);
		carry_over(id, cm_channel_of(old), cm_channel_of(channel));
	}
	cm_id_wait_acknowledged(id);
	if (was_sync)
		rdma_destroy_event_channel(old);
}

URDMA_EXPORT int rdma_migrate_id(struct rdma_cm_id *public,
				 struct rdma_event_channel *channel)
{
	struct cm_id *id = cm_id_of(public);
	bool sync = !channel;
	int error;

	if (sync) {
		channel = rdma_create_event_channel();
		if (!channel)
			return -1;
	}
	if (cm_channel_of(channel)->client != id->client)
		error = ENODEV; /* the id belongs to a urdmad that has ended */
	else
		error = cm_id_call(id, URDMA_ABI_CM_MIGRATE_ID,
				   cm_channel_of(channel)->handle);
	if (error) {
		if (sync)
			rdma_destroy_event_channel(channel);
		return cm_fail(error);
	}
	adopt(id, channel, sync);
	return 0;
}
