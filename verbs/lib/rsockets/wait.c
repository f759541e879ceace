/* wait.c - sleeps until a socket has events; rsockets.h explains why none is missed. */
#include <poll.h>

#include "rsockets.h"

int rs_descriptors(const struct rs *rs, int fds[2])
{
	int n = 0;

	if (rs->broken || rs->state == RS_LISTENING || rs->state == RS_FAILED || rs->state == RS_IDLE)
		return 0; /* the service thread reads the descriptors, or nobody needs to */
	if (rs->state == RS_DATAGRAM) { /* the service thread reads the event channel */
		fds[n++] = rs->kind->descriptor(rs);
		return n;
	}
	fds[n++] = rs->channel->fd;
	if (rs->id && rs->id->recv_cq_channel)
		fds[n++] = rs->id->recv_cq_channel->fd;
	return n;
}

static void look_once(struct rs *rs)
{
	rs_progress(rs);
	if (rs->state != RS_CONNECTED)
		rs_take_events(rs);
}

/* Checks the socket, repeatedly for a short time: a response that comes at once is not worth a sleep. */
static bool look(struct rs *rs, bool (*ready)(struct rs *rs))
{
	int64_t end = 0;

	for (;;) {
		look_once(rs);
		if (rs->closed || ready(rs))
			return true;
		if (!end)
			end = rs_now_ns() + 1000ll * rs_polling_us();
		else if (rs_now_ns() >= end)
			return false;
	}
}

/* Cleanup handler: drops the reference of rs_take. A thread is cancelled only while it sleeps. */
static void give_up(void *rs)
{
	rs_block_signals();
	rs_end_wait();
	rs_release(rs);
	rs_unblock_signals();
}

/* Sleeps without the lock. Returns 0 or an errno value; ETIMEDOUT when until_ns has passed. */
static int sleep_once(struct rs *rs, int own, int64_t until_ns)
{
	struct pollfd fds[3] = { { .fd = own, .events = POLLIN } };
	int named[2], n = rs_descriptors(rs, named), error = 0;
	int64_t wait = (int64_t)rs_wake_interval_ms() * 1000000, left = until_ns - rs_now_ns();

	for (int i = 0; i < n; i++)
		fds[1 + i] = (struct pollfd){ .fd = named[i], .events = POLLIN };
	if (until_ns >= 0 && left <= 0)
		return ETIMEDOUT;
	if (until_ns >= 0 && left < wait)
		wait = left;
	pthread_mutex_unlock(&rs->lock);
	pthread_cleanup_push(give_up, rs);
	if (rs_sys_poll(fds, (nfds_t)n + 1, wait) < 0)
		error = errno;
	pthread_cleanup_pop(0);
	pthread_mutex_lock(&rs->lock);
	rs_drain();
	if (n && fds[1].revents)
		rs_take_events(rs);
	return error;
}

int rs_wait(struct rs *rs, bool (*ready)(struct rs *rs), int64_t until_ns)
{
	int own, error = 0;

	if (until_ns == 0) {
		look_once(rs);
		return rs->closed || ready(rs) ? 0 : ETIMEDOUT;
	}
	if (look(rs, ready))
		return 0;
	own = rs_begin_wait(1);
	if (own < 0)
		return errno;
	rs_add_waiter(rs);
	while (!error) {
		rs_arm(rs);
		if (look(rs, ready))
			break;
		error = sleep_once(rs, own, until_ns);
	}
	rs_end_wait();
	return error;
}

bool rs_at_once(const struct rs *rs, int flags)
{
	return rs->options.nonblock || (flags & MSG_DONTWAIT);
}

int rs_wait_unless(struct rs *rs, bool (*ready)(struct rs *rs), int flags)
{
	int error = rs_wait(rs, ready, rs_at_once(rs, flags) ? 0 : -1);

	return error == ETIMEDOUT ? EAGAIN : error;
}
