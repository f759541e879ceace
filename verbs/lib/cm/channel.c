/*
 * channel.c - event channels: each is a socket on which urdmad sends event messages.
 *
 * The program may poll the socket itself, so only rdma_get_cm_event takes messages from it. A reader waits
 * with MSG_PEEK, outside cm_lock; this respects O_NONBLOCK, SA_RESTART and cancellation as read(2) on the
 * kernel's file does. It then takes the message without blocking, under cm_lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../session/client.h"
#include "cm.h"

/* The id of a connection request whose listener no longer exists. urdmad is told to destroy it, outside
 * cm_lock. */
struct orphan {
	struct orphan *next;
	struct urdma_client *client;
	uint32_t handle;
};

static struct orphan *orphans;

struct cm_channel *cm_channel_of(struct rdma_event_channel *channel)
{
	return (struct cm_channel *)((char *)channel -
				     offsetof(struct cm_channel, public));
}

struct cm_pending *cm_pending_new(const struct urdma_abi_cm_event *message)
{
	struct cm_pending *pending = malloc(sizeof(*pending));

	if (pending)
		*pending = (struct cm_pending){ .message = *message };
	return pending;
}

void cm_channel_push(struct cm_channel *channel,
		     const struct urdma_abi_cm_event *message)
{
	struct cm_pending *pending = cm_pending_new(message);

	if (pending)
		STAILQ_INSERT_TAIL(&channel->pending, pending, next);
}

/*
 * Makes urdmad send a message without an id. The message stays in the socket while events are pending and
 * is then discarded, as any message of an unknown id is.
 */
void cm_channel_wake(struct cm_channel *channel)
{
	int cancel;

	urdma_call_handle(channel->client, URDMA_ABI_CM_WAKE_CHANNEL, channel->handle);
	cm_lock(&cancel);
	channel->stale = true;
	if (STAILQ_EMPTY(&channel->pending)) /* another thread has taken them */
		cm_channel_skip_stale(channel);
	cm_unlock(cancel);
	cm_orphans_release();
}

static bool pop(struct cm_channel *channel,
		struct urdma_abi_cm_event *message)
{
	struct cm_pending *pending = STAILQ_FIRST(&channel->pending);

	if (!pending)
		return false;
	*message = pending->message;
	STAILQ_REMOVE_HEAD(&channel->pending, next);
	free(pending);
	return true;
}

void cm_orphan(struct cm_channel *channel,
	       const struct urdma_abi_cm_event *message)
{
	struct orphan *orphan;

	if (message->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return;
	orphan = malloc(sizeof(*orphan));
	if (!orphan)
		return;
	orphan->client = channel->client;
	orphan->handle = message->child;
	orphan->next = orphans;
	orphans = orphan;
}

void cm_orphans_release(void)
{
	struct orphan *list, *orphan;
	int cancel;

	cm_lock(&cancel);
	list = orphans;
	orphans = NULL;
	cm_unlock(cancel);
	while ((orphan = list)) {
		list = orphan->next;
		urdma_call_handle(orphan->client, URDMA_ABI_CM_DESTROY_ID,
				  orphan->handle);
		free(orphan);
	}
}

/* Returns whether the file at the descriptor is not this process's socket: it belongs to the parent, or
 * the program has closed our descriptor and reused the number. */
static bool is_foreign(const struct cm_channel *channel)
{
	return urdma_client_state(channel->client) == URDMA_CLIENT_FORKED || !urdma_kept_is(&channel->events);
}

/* Reads one message without waiting. Returns 0, or EAGAIN, or EPIPE if urdmad has closed the socket, the message is
 * none that it may send, or the socket is not ours. */
static int try_receive(const struct cm_channel *channel, struct urdma_abi_cm_event *message, int flags)
{
	int fd = channel->public.fd;
	ssize_t length;

	if (is_foreign(channel))
		return EPIPE;
	for (;;) {
		length = recv(fd, message, sizeof(*message),
			      flags | MSG_DONTWAIT | MSG_TRUNC);
		if (length == (ssize_t)sizeof(*message) && message->event != RDMA_CM_EVENT_MULTICAST_JOIN)
			return 0;
		if (length > 0) /* MULTICAST_JOIN has an address of ours: only multicast.c makes it */
			urdma_client_lose(channel->client, "an event that no urdmad sends");
		if (length >= 0)
			return EPIPE;
		if (errno == EINTR)
			continue;
		return errno == ECONNRESET || errno == ENOTCONN ? EPIPE : errno;
	}
}

/* Calls try_receive but keeps errno, for public functions that always succeed. */
static int receive(const struct cm_channel *channel, struct urdma_abi_cm_event *message, int flags)
{
	int before = errno, error = try_receive(channel, message, flags);

	errno = before;
	return error;
}

void cm_channel_skip_stale(struct cm_channel *channel)
{
	struct urdma_abi_cm_event message;

	while (channel->stale) {
		if (receive(channel, &message, MSG_PEEK)) {
			channel->stale = false;
			return;
		}
		if (cm_id_find(channel->client, message.id))
			return;
		if (receive(channel, &message, 0))
			return;
		cm_orphan(channel, &message);
	}
}

static void push_removal(struct cm_id *id, void *argument)
{
	struct cm_channel *channel = argument;
	struct urdma_abi_cm_event message = {
		.id = id->handle,
		.device = id->device,
	};

	if (id->public.channel != &channel->public ||
	    id->device == URDMA_ABI_NO_DEVICE)
		return;
	message.event = RDMA_CM_EVENT_DEVICE_REMOVAL;
	cm_channel_push(channel, &message);
	/* Programs that count ended connections wait for a DISCONNECTED event, too. It follows the removal
	 * event because rping treats a plain disconnect as success. A program that destroys the id on removal,
	 * as it should, never sees it. */
	if (id->connected) {
		message.event = RDMA_CM_EVENT_DISCONNECTED;
		cm_channel_push(channel, &message);
	}
}

int cm_channel_poll(struct cm_channel *channel,
		    struct urdma_abi_cm_event *message)
{
	int error;

	if (pop(channel, message)) {
		if (STAILQ_EMPTY(&channel->pending))
			cm_channel_skip_stale(channel);
		return 0;
	}
	if (channel->hung_up)
		return ENODEV;
	error = receive(channel, message, 0);
	if (error != EPIPE) {
		cm_channel_skip_stale(channel);
		return error;
	}
	channel->hung_up = true;
	urdma_client_check(channel->client);
	cm_id_each(push_removal, channel);
	return pop(channel, message) ? 0 : ENODEV;
}

/*
 * Memory of the channels destroyed last. rping destroys a channel while another thread, which has just
 * acknowledged the last event, is about to call rdma_get_cm_event again. That thread must find a destroyed
 * channel here, and then sleeps.
 */
static struct cm_channel *destroyed[16];
static unsigned next_destroyed;

static void keep_memory(struct cm_channel *channel)
{
	struct cm_channel *oldest;
	int cancel;

	cm_lock(&cancel);
	oldest = destroyed[next_destroyed];
	destroyed[next_destroyed] = channel;
	next_destroyed = (next_destroyed + 1) % (sizeof(destroyed) / sizeof(*destroyed));
	cm_unlock(cancel);
	free(oldest);
}

/* Frees the channel once no thread can reach it. */
static void release(struct cm_channel *channel)
{
	struct urdma_abi_cm_event message;
	int cancel;

	cm_lock(&cancel);
	while (pop(channel, &message) ||
	       receive(channel, &message, 0) == 0)
		cm_orphan(channel, &message);
	cm_unlock(cancel);
	cm_orphans_release();
	urdma_call_handle(channel->client, URDMA_ABI_CM_DESTROY_CHANNEL,
			  channel->handle);
	urdma_kept_close(&channel->events);
	keep_memory(channel);
}

void cm_channel_leave(void *argument)
{
	struct cm_channel *channel = argument;

	if (urdma_readers_leave(&channel->readers))
		release(channel);
}

/* Sleeps until the socket is readable. Returns 0 or an errno value. */
static int wait_readable(struct cm_channel *channel)
{
	ssize_t length;
	char head;

	pthread_cleanup_push(cm_channel_leave, channel);
	length = recv(channel->public.fd, &head, sizeof(head), MSG_PEEK);
	pthread_cleanup_pop(0);
	/* recv returns 0 if urdmad has closed the socket; the next read reports that. */
	return length < 0 && errno != ECONNRESET ? errno : 0;
}

int cm_channel_wait(struct cm_channel *channel)
{
	bool ready;
	int error = 0, cancel;

	cm_lock(&cancel);
	ready = !STAILQ_EMPTY(&channel->pending) || channel->hung_up || is_foreign(channel);
	cm_unlock(cancel);
	if (!ready)
		error = wait_readable(channel);
	return urdma_readers_abandoned(&channel->readers) ? EBADF : error;
}

/* Fills the channel from urdmad's answer. */
static int open_channel(struct cm_channel *channel)
{
	struct urdma_abi_header request = { 0 };
	struct urdma_abi_handle response;
	int error;

	STAILQ_INIT(&channel->pending);
	channel->client = urdma_client_get();
	if (!channel->client)
		return errno;
	error = urdma_call_fds(channel->client, URDMA_ABI_CM_CREATE_CHANNEL,
			       &request, sizeof(request), &response,
			       sizeof(response), -1, &channel->public.fd, 1);
	if (!error)
		urdma_keep(&channel->events, channel->public.fd);
	channel->handle = response.handle;
	return error;
}

URDMA_EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct cm_channel *channel = calloc(1, sizeof(*channel));
	int error;

	if (!channel)
		return urdma_null(ENOMEM);
	error = open_channel(channel);
	if (error) {
		free(channel);
		return urdma_null(error);
	}
	return &channel->public;
}

/*
 * A program may end while a thread sleeps in rdma_get_cm_event. The kernel lets such a thread sleep when
 * the file is closed; an error would make those programs exit with a failure. So the channel exists until
 * the thread leaves, and its memory is kept for some time after that.
 */
URDMA_EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *public)
{
	urdma_readers_abandon(&cm_channel_of(public)->readers);
	cm_channel_leave(cm_channel_of(public));
}
