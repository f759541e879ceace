/* waiters.c - threads that wait for sockets, and waking them. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rsockets.h"

#define LEAST_ROOM 64u /* sockets for which memory is allocated at first */

/* The sockets for which a thread waits. */
struct waits {
	pid_t made_by; /* a child must not use its parent's pipe */
	struct rs_file ends[2];
	size_t used, room;
	struct rs_waiter waiters[];
};

/* Guards the lists of waiters of all sockets. It is the last in the order of locks. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key; /* for the thread's struct waits */

static void leave(struct waits *w)
{
	struct rs_waiter **link;

	pthread_mutex_lock(&lock);
	for (; w->used; w->used--) {
		struct rs_waiter *one = &w->waiters[w->used - 1];

		for (link = &one->rs->waiters; *link && *link != one; link = &(*link)->next)
			;
		if (*link)
			*link = one->next;
	}
	pthread_mutex_unlock(&lock);
}

static void free_waits(struct waits *w)
{
	for (int i = 0; i < 2; i++)
		if (rs_is_open(&w->ends[i]))
			rs_raw_close(w->ends[i].fd);
	munmap(w, sizeof(*w) + w->room * sizeof(*w->waiters));
}

static void end_thread(void *value)
{
	rs_block_signals();
	leave(value);
	free_waits(value);
	rs_unblock_signals();
}

static void after_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void prepare(void)
{
	pthread_key_create(&key, end_thread);
	pthread_atfork(NULL, NULL, after_fork_child);
}

/* Allocates with mmap, because a signal handler may have interrupted malloc. NULL with errno set on
 * failure. */
static struct waits *new_waits(size_t room)
{
	struct waits *w = mmap(NULL, sizeof(*w) + room * sizeof(*w->waiters), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ends[2] = { -1, -1 }, error;

	if (w == MAP_FAILED)
		return NULL;
	error = pipe2(ends, O_NONBLOCK | O_CLOEXEC) ? errno : 0;
	*w = (struct waits){ .made_by = getpid(), .room = room, .ends = { rs_file_of(ends[0]), rs_file_of(ends[1]) } };
	if (!error)
		error = pthread_setspecific(key, w);
	if (!error)
		return w;
	free_waits(w);
	errno = error;
	return NULL;
}

static bool is_usable(const struct waits *w, size_t sockets)
{
	return w->made_by == getpid() && w->room >= sockets && rs_is_open(&w->ends[0]) && rs_is_open(&w->ends[1]);
}

int rs_begin_wait(size_t sockets)
{
	struct waits *w = pthread_getspecific(key);

	if (w && w->made_by == getpid())
		leave(w); /* otherwise the sockets are the parent's */
	if (w && !is_usable(w, sockets)) {
		pthread_setspecific(key, NULL);
		free_waits(w);
		w = NULL;
	}
	if (!w)
		w = new_waits(sockets > LEAST_ROOM ? sockets : LEAST_ROOM);
	return w ? w->ends[0].fd : -1;
}

void rs_add_waiter(struct rs *rs)
{
	struct waits *w = pthread_getspecific(key);
	struct rs_waiter *one = &w->waiters[w->used++];

	pthread_mutex_lock(&lock);
	*one = (struct rs_waiter){ .next = rs->waiters, .rs = rs, .wake = w->ends[1] };
	__atomic_store_n(&rs->waiters, one, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
}

/* A signal handler may have replaced the thread's struct waits. */
void rs_drain(void)
{
	struct waits *w = pthread_getspecific(key);
	char bytes[256];
	ssize_t got = w && rs_is_open(&w->ends[0]) ? read(w->ends[0].fd, bytes, sizeof(bytes)) : 0;

	(void)got; /* EAGAIN: the pipe is empty */
}

void rs_end_wait(void)
{
	struct waits *w = pthread_getspecific(key);
	int before = errno;

	if (w) /* NULL if a signal handler's call could not allocate a new one */
		leave(w);
	rs_drain();
	errno = before;
}

void rs_signal(struct rs *rs)
{
	ssize_t n;

	if (!__atomic_load_n(&rs->waiters, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&lock);
	for (struct rs_waiter *w = rs->waiters; w; w = w->next) {
		n = rs_is_open(&w->wake) ? write(w->wake.fd, "w", 1) : 0;
		(void)n; /* a full pipe is readable, which is enough */
	}
	pthread_mutex_unlock(&lock);
}
