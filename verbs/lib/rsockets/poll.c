/* poll.c - rpoll and rselect, for rsockets and ordinary descriptors in one call. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <unistd.h>

#include "rsockets.h"

#define ON_STACK 16u
#define PER_SOCKET 2u /* descriptors on which an rsocket's events appear */

/* The descriptors of one call. sockets[i] is an rsocket with a reference, or NULL for an ordinary
 * descriptor. kernel_fds has room for all descriptors given to ppoll. */
struct polled {
	struct pollfd *fds;
	nfds_t count;
	struct rs **sockets;
	struct pollfd *kernel_fds;
	void *memory; /* memory of both arrays, if they do not fit on the stack */
	int own;
};

static short state_of_datagrams(struct rs *rs)
{
	short events = rs->broken || rs->error ? POLLERR : 0;

	if (rs->kind->can_receive(rs))
		events |= POLLIN | POLLRDNORM;
	if (rs->kind->can_send(rs))
		events |= POLLOUT | POLLWRNORM;
	return events;
}

/* Returns the events that poll(2) would report for the socket; its lock is held. */
static short state_of(struct rs *rs)
{
	short events = 0;

	rs_progress(rs);
	if (rs->state != RS_CONNECTED)
		rs_take_events(rs);
	switch (rs->state) {
	case RS_DATAGRAM:
		return state_of_datagrams(rs);
	case RS_IDLE:
		return POLLOUT | POLLHUP;
	case RS_LISTENING:
		return rs->backlog.first || rs->broken ? POLLIN | POLLRDNORM : 0;
	case RS_FAILED:
		return POLLIN | POLLOUT | POLLERR | POLLHUP;
	case RS_CONNECTED:
		break;
	default:
		return 0;
	}
	if (rs_can_receive(rs))
		events |= POLLIN | POLLRDNORM;
	if (rs_can_send(rs))
		events |= POLLOUT | POLLWRNORM;
	if (rs->rx.ended || rs->no_receive || rs->broken)
		events |= POLLRDHUP;
	if (rs->broken || (rs->rx.ended && rs->tx.ended))
		events |= POLLHUP;
	if (rs->broken && rs->error)
		events |= POLLERR;
	return events;
}

/* While there is unread data, POLLHUP is not reported to a thread that polls for input: programs (rstream)
 * stop at POLLHUP, although poll(2) allows both together. */
static short news_of(struct rs *rs, short wanted)
{
	short news = state_of(rs);

	if ((wanted & (POLLIN | POLLRDNORM)) && rs->rx.arrived != rs->rx.read && !(news & POLLERR))
		news &= ~POLLHUP;
	return news & (wanted | POLLERR | POLLHUP);
}

/* Sets revents of the rsockets and returns how many of them have events. Leaves revents of ordinary
 * descriptors as they are. */
static int look(struct polled *p)
{
	int n = 0;

	for (nfds_t i = 0; i < p->count; i++) {
		if (!p->sockets[i])
			continue;
		pthread_mutex_lock(&p->sockets[i]->lock);
		p->fds[i].revents = p->sockets[i]->closed ? POLLNVAL : news_of(p->sockets[i], p->fds[i].events);
		pthread_mutex_unlock(&p->sockets[i]->lock);
		n += p->fds[i].revents != 0;
	}
	return n;
}

static nfds_t rsockets_among(const struct polled *p)
{
	nfds_t n = 0;

	for (nfds_t i = 0; i < p->count; i++)
		n += p->sockets[i] != NULL;
	return n;
}

/* Registers this thread's pipe with each socket, so that no event is missed. */
static void enlist(struct polled *p)
{
	for (nfds_t i = 0; i < p->count; i++) {
		if (!p->sockets[i])
			continue;
		pthread_mutex_lock(&p->sockets[i]->lock);
		rs_add_waiter(p->sockets[i]);
		rs_arm(p->sockets[i]);
		pthread_mutex_unlock(&p->sockets[i]->lock);
	}
}

/* Fills in the descriptors to sleep on: ordinary ones at their own indices, then this thread's pipe, then
 * the descriptors of the rsockets. */
static nfds_t fill_kernel_fds(struct polled *p)
{
	nfds_t n = p->count;
	int named[PER_SOCKET], got;

	p->kernel_fds[n++] = (struct pollfd){ .fd = p->own, .events = POLLIN };
	for (nfds_t i = 0; i < p->count; i++) {
		p->kernel_fds[i] = p->sockets[i] ? (struct pollfd){ .fd = -1 } : p->fds[i];
		if (!p->sockets[i])
			continue;
		pthread_mutex_lock(&p->sockets[i]->lock);
		got = rs_descriptors(p->sockets[i], named);
		for (int j = 0; j < got; j++)
			p->kernel_fds[n++] = (struct pollfd){ .fd = named[j], .events = POLLIN };
		pthread_mutex_unlock(&p->sockets[i]->lock);
	}
	return n;
}

/* The end of a connection comes on its event channel, which look does not read while the socket is
 * connected. */
static void take_ends(struct polled *p)
{
	for (nfds_t i = 0; i < p->count; i++) {
		if (!p->sockets[i])
			continue;
		pthread_mutex_lock(&p->sockets[i]->lock);
		if (p->sockets[i]->state == RS_CONNECTED && !p->sockets[i]->broken)
			rs_take_events(p->sockets[i]);
		pthread_mutex_unlock(&p->sockets[i]->lock);
	}
}

/* Polls once, for at most wait_ns. Returns how many of the program's descriptors have events, or -1 with
 * errno set. */
static int poll_once(struct polled *p, int64_t wait_ns)
{
	nfds_t n = fill_kernel_fds(p);
	bool kernel_fds = false;
	int found = 0;

	if (rs_sys_poll(p->kernel_fds, n, wait_ns) < 0)
		return -1;
	for (nfds_t i = 0; i < p->count; i++) {
		if (p->sockets[i])
			continue;
		p->fds[i].revents = p->kernel_fds[i].revents;
		found += p->fds[i].revents != 0;
	}
	for (nfds_t i = p->count + 1; i < n; i++)
		kernel_fds = kernel_fds || p->kernel_fds[i].revents;
	if (kernel_fds)
		take_ends(p);
	return found + look(p);
}

static int poll_until(struct polled *p, int64_t until)
{
	int64_t most = (int64_t)rs_wake_interval_ms() * 1000000, left;
	int found;

	for (;;) {
		p->own = rs_begin_wait(rsockets_among(p));
		if (p->own < 0)
			return -1;
		enlist(p);
		found = look(p);
		left = until < 0 ? most : until - rs_now_ns();
		if (left < 0 || found)
			left = 0;
		found = poll_once(p, left < most ? left : most);
		rs_end_wait();
		if (found || (until >= 0 && rs_now_ns() >= until))
			return found;
	}
}

static int poll_all(struct polled *p, int timeout)
{
	nfds_t sockets = rsockets_among(p);
	int found;

	if (!sockets)
		return rs_sys_poll(p->fds, p->count, timeout < 0 ? -1 : timeout * 1000000ll);
	found = look(p);
	if (found && sockets == p->count)
		return found;
	p->own = -1;
	if (found || timeout == 0)
		return poll_once(p, 0);
	return poll_until(p, timeout < 0 ? -1 : rs_now_ns() + timeout * 1000000ll);
}

/* The arrays of a call with few descriptors. */
struct room {
	struct rs *sockets[ON_STACK];
	struct pollfd kernel_fds[ON_STACK * (1 + PER_SOCKET) + 1];
};

static bool find_room(struct polled *p, struct room *room)
{
	if (p->count <= ON_STACK) {
		p->sockets = room->sockets;
		p->kernel_fds = room->kernel_fds;
		return true;
	}
	p->memory = malloc(p->count * (sizeof(struct rs *) + (1 + PER_SOCKET) * sizeof(struct pollfd)) +
		      sizeof(struct pollfd));
	p->sockets = p->memory;
	p->kernel_fds = p->memory ? (void *)(p->sockets + p->count) : NULL;
	return p->memory;
}

static void release_sockets(struct polled *p)
{
	int before = errno;

	for (nfds_t i = 0; i < p->count; i++)
		if (p->sockets[i])
			rs_release(p->sockets[i]);
	free(p->memory);
	errno = before;
}

/* Cleanup handler: a thread is cancelled only while it sleeps. */
static void give_up(void *polled)
{
	rs_block_signals();
	rs_end_wait();
	release_sockets(polled);
	rs_unblock_signals();
}

RS_EXPORT int rpoll(struct pollfd *fds, nfds_t count, int timeout)
{
	struct polled p = { .fds = fds, .count = count };
	struct room room;
	int found, before = errno;

	if (count > (nfds_t)1 << 20)
		return rs_fail(EINVAL);
	if (!find_room(&p, &room))
		return rs_fail(ENOMEM);
	rs_block_signals();
	for (nfds_t i = 0; i < count; i++) {
		p.sockets[i] = rs_hold(fds[i].fd);
		fds[i].revents = 0;
	}
	errno = before;
	pthread_cleanup_push(give_up, &p);
	found = poll_all(&p, timeout);
	pthread_cleanup_pop(0);
	release_sockets(&p);
	rs_unblock_signals();
	return found;
}

/* ---- rselect -------------------------------------------------------------------- */

static bool in_set(int fd, const fd_set *set)
{
	return set && FD_ISSET(fd, set);
}

static short events_of(int fd, const fd_set *reads, const fd_set *writes, const fd_set *excepts)
{
	return (short)((in_set(fd, reads) ? POLLIN : 0) | (in_set(fd, writes) ? POLLOUT : 0) |
		       (in_set(fd, excepts) ? POLLPRI : 0));
}

/* Keeps fd in the set only if it has such events. */
static int keep(int fd, fd_set *set, short revents, short counts)
{
	if (!in_set(fd, set))
		return 0;
	if (revents & counts)
		return 1;
	FD_CLR(fd, set);
	return 0;
}

/* Converts events to sets; select(2) says which events of poll(2) make a descriptor readable or writable. */
static int to_sets(const struct pollfd *fds, nfds_t n, fd_set *reads, fd_set *writes, fd_set *excepts)
{
	int found = 0;

	for (nfds_t i = 0; i < n; i++) {
		if (fds[i].revents & POLLNVAL)
			return rs_fail(EBADF);
		found += keep(fds[i].fd, reads, fds[i].revents, POLLIN | POLLHUP | POLLERR);
		found += keep(fds[i].fd, writes, fds[i].revents, POLLOUT | POLLERR);
		found += keep(fds[i].fd, excepts, fds[i].revents, POLLPRI);
	}
	return found;
}

RS_EXPORT int rselect(int count, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t n = 0;
	short events;
	int wait = -1;

	if (count < 0 || count > FD_SETSIZE || (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return rs_fail(EINVAL);
	for (int fd = 0; fd < count; fd++) {
		events = events_of(fd, readfds, writefds, exceptfds);
		if (events)
			fds[n++] = (struct pollfd){ .fd = fd, .events = events };
	}
	if (timeout)
		wait = timeout->tv_sec > 2000000 ? 2000000000 : (int)(timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000);
	if (rpoll(fds, n, wait) < 0)
		return -1;
	return to_sets(fds, n, readfds, writefds, exceptfds);
}
