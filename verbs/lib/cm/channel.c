/*
 * channel.c - event channels: a socket that urdmad writes event messages to.
 *
 * The program polls the socket itself, so nothing reads ahead of
 * rdma_get_cm_event. A reader waits by peeking, outside cm_lock, which honours
 * O_NONBLOCK, SA_RESTART and cancellation as a read of the kernel's file does,
 * and then takes the message without blocking, under cm_lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../session/client.h"
#include "cm.h"

/* The id of a request whose listener is gone; urdmad is told outside cm_lock. */
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
 * urdmad sends a message of no id. It is left in the socket while events are
 * pending, and then dropped as every message of an unknown id.
 */
void cm_channel_wake(struct cm_channel *channel)
{
	int cancel;

	urdma_call_handle(channel->client, URDMA_ABI_CM_WAKE_CHANNEL, channel->handle);
	cm_lock(&cancel);
	channel->stale = true;
	if (STAILQ_EMPTY(&channel->pending)) /* another thread was faster */
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

/* What lies in the socket is the parent's, or the program's: it has closed ours. */
static bool is_others(const struct cm_channel *channel)
{
	return urdma_client_state(channel->client) == URDMA_CLIENT_FORKED || !urdma_kept_is(&channel->events);
}

/* Reads one message without waiting: 0, EAGAIN, EPIPE after urdmad hung up, and where
 * the socket is others'. */
static int try_receive(const struct cm_channel *channel, struct urdma_abi_cm_event *message, int flags)
{
	int fd = channel->public.fd;
	ssize_t length;

	if (is_others(channel))
		return EPIPE;
	for (;;) {
		length = recv(fd, message, sizeof(*message),
			      flags | MSG_DONTWAIT | MSG_TRUNC);
		if (length == (ssize_t)sizeof(*message))
			return 0;
		if (length == 0)
			return EPIPE;
		if (length > 0) {
			/* no message of this ABI version: take it off and go on */
			recv(fd, message, sizeof(*message), MSG_DONTWAIT);
			continue;
		}
		if (errno == EINTR)
			continue;
		return errno == ECONNRESET || errno == ENOTCONN ? EPIPE : errno;
	}
}

/* The same, for public functions that succeed whatever comes: errno stays what
 * the program had. */
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
	/* Programs that count the ends of connections wait for this one too. It
	 * comes second: rping takes a mere disconnect for a success. A program
	 * that destroys the id on removal, as it should, never sees it. */
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
 * The last channels that were destroyed, whose memory is kept. Programs destroy a
 * channel while another thread, which has just acknowledged the last event, is on
 * its way back into rdma_get_cm_event (rping). That thread finds the channel
 * destroyed, and sleeps as one that was faster does.
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

/* Gives the channel back, once it is out of reach for everyone. */
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

/* Sleeps until the socket is readable; 0 or an errno value. */
static int wait_readable(struct cm_channel *channel)
{
	ssize_t length;
	char head;

	pthread_cleanup_push(cm_channel_leave, channel);
	length = recv(channel->public.fd, &head, sizeof(head), MSG_PEEK);
	pthread_cleanup_pop(0);
	/* Peeking returns 0 when urdmad hung up: reading finds out. */
	return length < 0 && errno != ECONNRESET ? errno : 0;
}

int cm_channel_wait(struct cm_channel *channel)
{
	bool ready;
	int error = 0, cancel;

	cm_lock(&cancel);
	ready = !STAILQ_EMPTY(&channel->pending) || channel->hung_up || is_others(channel);
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
 * Programs end with a thread still asleep in rdma_get_cm_event. The kernel
 * leaves it asleep when the file is closed under it, and an error would end
 * such programs with a failure: so the channel stays until the thread leaves, and
 * its memory for a while longer.
 */
URDMA_EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *public)
{
	urdma_readers_abandon(&cm_channel_of(public)->readers);
	cm_channel_leave(cm_channel_of(public));
}
