/* channel.c - completion channels: ibv_get_cq_event and the acknowledgement of its events. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "datapath/warn.h"
#include "making.h"

struct urdma_channel *urdma_channel_new(struct ibv_context *context)
{
	struct urdma_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->channel.context = context;
	channel->client = urdma_context_of(context)->client;
	pthread_mutex_init(&channel->lock, NULL);
	return channel;
}

void urdma_channel_discard(struct urdma_channel *channel)
{
	pthread_mutex_destroy(&channel->lock);
	free(channel);
}

URDMA_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct urdma_abi_handle request = { .handle = urdma_context_of(context)->handle };
	struct urdma_abi_handle response;
	struct urdma_channel *channel = urdma_channel_new(context);
	int status;

	if (!channel)
		return NULL;
	status = urdma_call_fds(channel->client, URDMA_ABI_CREATE_CHANNEL, &request, sizeof(request), &response,
				sizeof(response), -1, &channel->channel.fd, 1);
	if (status) {
		urdma_channel_discard(channel);
		return urdma_null(status);
	}
	urdma_keep(&channel->events, channel->channel.fd);
	channel->handle = response.handle;
	return &channel->channel;
}

static void leave(void *arg)
{
	struct urdma_channel *channel = arg;

	if (!urdma_readers_leave(&channel->readers))
		return;
	urdma_kept_close(&channel->events);
	urdma_channel_discard(channel);
}

void urdma_channel_end(struct urdma_channel *channel)
{
	leave(channel);
}

URDMA_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
	struct urdma_channel *channel = urdma_channel_of(ibv);
	struct urdma_client *client = channel->client;
	int status;

	pthread_mutex_lock(&channel->lock);
	status = ibv->refcnt ? EBUSY : 0;
	pthread_mutex_unlock(&channel->lock);
	if (status)
		return urdma_status(status);
	urdma_readers_abandon(&channel->readers);
	status = urdma_call_destroy(client, URDMA_ABI_DESTROY_CHANNEL, channel->handle);
	if (status) {
		urdma_readers_keep(&channel->readers);
		return status;
	}
	leave(channel);
	return 0;
}

/* Returns the queue that an event names and counts the event, so that the queue is not destroyed before
 * the event is acknowledged. Returns NULL for a late event, and for a queue of another channel: rdma/rdma_verbs.h
 * asserts that there is none. */
static struct urdma_cq *count_event(struct urdma_channel *channel, uint32_t handle)
{
	struct urdma_client *client = channel->client;
	struct urdma_cq *cq;

	urdma_handles_lock(client);
	cq = urdma_handles_find(client, URDMA_KIND_CQ, handle);
	if (cq && cq->ex.channel != &channel->channel)
		cq = NULL;
	if (cq)
		urdma_events_deliver(&cq->completions);
	urdma_handles_unlock(client);
	return cq;
}

/* Returns the queue of the next event, or NULL with errno set: EBADF if the channel was destroyed. */
static struct urdma_cq *next_event(struct urdma_channel *channel)
{
	struct urdma_client *client = channel->client;
	struct urdma_abi_comp_event event;
	struct urdma_cq *cq;
	int got;

	urdma_yield_stop(client);
	for (;;) {
		got = urdma_event_read(client, &channel->events, &event, sizeof(event));
		if (got < 0)
			return NULL;
		if (got == 0)
			break;
		cq = count_event(channel, event.cq);
		if (cq)
			return cq;
	}
	if (urdma_readers_abandoned(&channel->readers))
		return urdma_null(EBADF);
	urdma_client_check(client);
	cq = urdma_flush_event(channel);
	if (!cq)
		errno = EIO;
	return cq;
}

/* Calls next_event in a way that allows the thread to be cancelled while it waits. If there is no event,
 * *blocking says whether the program's calls block. */
static struct urdma_cq *read_event(struct urdma_channel *channel, bool *blocking)
{
	struct urdma_cq *found;
	int error;

	urdma_readers_enter(&channel->readers);
	pthread_cleanup_push(leave, channel);
	found = next_event(channel);
	pthread_cleanup_pop(0);
	error = errno;
	*blocking = !found && !(fcntl(channel->channel.fd, F_GETFL) & O_NONBLOCK);
	leave(channel);
	errno = error;
	return found;
}

URDMA_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	bool blocking;
	struct urdma_cq *found;

	if (urdma_warn_wanted && !(fcntl(channel->fd, F_GETFL) & O_NONBLOCK)) {
		urdma_warn_waits(urdma_channel_of(channel));
		urdma_warn_sleeps(urdma_channel_of(channel));
	}
	found = read_event(urdma_channel_of(channel), &blocking);
	if (!found)
		return errno == EBADF ? urdma_readers_sleep(blocking) : -1;
	URDMA_STORE(found->awaits, false);
	*cq = urdma_cq_ibv(found);
	*cq_context = found->ex.cq_context;
	return 0;
}

URDMA_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	urdma_events_acknowledge(&urdma_cq_of(cq)->completions, nevents);
}
