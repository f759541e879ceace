/* wait.c - sleeping until a socket has news; rsockets.h says how none is missed. */
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rsockets.h"

static pthread_key_t key; /* a thread's eventfd + 1, to be closed with it */
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void close_own(void *value)
{
	rs_raw_close((int)(intptr_t)value - 1);
}

static void make_key(void)
{
	pthread_key_create(&key, close_own);
}

static pid_t made_by; /* a child must not share its parent's */

int rs_own_eventfd(void)
{
	pid_t own = getpid();
	intptr_t value;
	int fd;

	pthread_once(&key_once, make_key);
	value = (intptr_t)pthread_getspecific(key);
	if (value && __atomic_load_n(&made_by, __ATOMIC_RELAXED) == own)
		return (int)value - 1;
	if (value)
		rs_raw_close((int)value - 1);
	fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (fd < 0)
		return -1;
	__atomic_store_n(&made_by, own, __ATOMIC_RELAXED);
	pthread_setspecific(key, (void *)(intptr_t)(fd + 1));
	return fd;
}

/* Not inlined: gcc 14 would see the address of a caller's variable stay behind,
 * and not that rs_remove_waiter always follows. */
__attribute__((noinline)) void rs_add_waiter(struct rs *rs, struct rs_waiter *waiter)
{
	waiter->next = rs->waiters;
	rs->waiters = waiter;
}

void rs_remove_waiter(struct rs *rs, struct rs_waiter *waiter)
{
	struct rs_waiter **link = &rs->waiters;

	while (*link && *link != waiter)
		link = &(*link)->next;
	if (*link)
		*link = waiter->next;
}

int64_t rs_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Raw: librspreload has a poll of its own, and these descriptors are none of the
 * program's. wait_ns below 0: for ever. */
int rs_sys_poll(struct pollfd *fds, nfds_t n, int64_t wait_ns)
{
	struct timespec wait = { .tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000 };

	return (int)syscall(SYS_ppoll, fds, n, wait_ns < 0 ? NULL : &wait, NULL, 0);
}

int rs_descriptors(const struct rs *rs, int fds[2])
{
	int n = 0;

	if (rs->broken || rs->state == RS_LISTENING || rs->state == RS_FAILED || rs->state == RS_IDLE)
		return 0; /* the service thread looks, or nobody has to */
	if (rs->state == RS_DATAGRAM) { /* the service thread looks at the event channel */
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

/* Looks at everything, and for a short while again and again: an answer that comes
 * at once is not worth a sleep. */
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

/* Asleep without the lock. 0 or an errno value; ETIMEDOUT when the time is up. */
static int sleep_once(struct rs *rs, int own, int64_t until_ns)
{
	struct pollfd fds[3] = { { .fd = own, .events = POLLIN } };
	int named[2], n = rs_descriptors(rs, named), error = 0;
	int64_t wait = (int64_t)rs_wake_interval_ms() * 1000000, left = until_ns - rs_now_ns();
	uint64_t count;
	ssize_t got;

	for (int i = 0; i < n; i++)
		fds[1 + i] = (struct pollfd){ .fd = named[i], .events = POLLIN };
	if (until_ns >= 0 && left <= 0)
		return ETIMEDOUT;
	if (until_ns >= 0 && left < wait)
		wait = left;
	pthread_mutex_unlock(&rs->lock);
	if (rs_sys_poll(fds, (nfds_t)n + 1, wait) < 0)
		error = errno;
	pthread_mutex_lock(&rs->lock);
	got = read(own, &count, sizeof(count));
	(void)got; /* EAGAIN: nobody wrote */
	if (n && fds[1].revents)
		rs_take_events(rs);
	return error;
}

int rs_wait(struct rs *rs, bool (*ready)(struct rs *rs), int64_t until_ns)
{
	struct rs_waiter me;
	int error = 0;

	if (until_ns == 0) {
		look_once(rs);
		return rs->closed || ready(rs) ? 0 : ETIMEDOUT;
	}
	if (look(rs, ready))
		return 0;
	me.eventfd = rs_own_eventfd();
	if (me.eventfd < 0)
		return errno;
	rs_add_waiter(rs, &me);
	while (!error) {
		rs_arm(rs);
		if (look(rs, ready))
			break;
		error = sleep_once(rs, me.eventfd, until_ns);
	}
	rs_remove_waiter(rs, &me);
	return error;
}
