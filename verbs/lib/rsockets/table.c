/*
 * table.c - the table from descriptors to rsockets. A call that uses a socket takes a reference, so that
 * rclose in another thread can't free it meanwhile.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rsockets.h"

#define PER_PAGE 1024
#define PAGES 1024 /* for up to a million descriptors */

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs **pages[PAGES];

static struct rs **entry_of(int fd)
{
	if (fd < 0 || fd / PER_PAGE >= PAGES || !pages[fd / PER_PAGE])
		return NULL;
	return &pages[fd / PER_PAGE][fd % PER_PAGE];
}

/* Marks sockets that a child inherited; they are never accessed again. */
static struct rs parents;

/* One byte that the kernel zeroes in every child, including those made without fork handlers (_Fork(3),
 * clone(2)). NULL: the kernel can't do that. */
static char *own;

static bool is_parents(const struct rs *rs)
{
	return rs == &parents || (rs && own && !*own);
}

static void before_fork(void)
{
	pthread_mutex_lock(&table_lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&table_lock);
}

static void after_fork_child(void)
{
	pthread_mutex_init(&table_lock, NULL);
	for (int i = 0; i < PAGES; i++)
		for (int j = 0; pages[i] && j < PER_PAGE; j++)
			if (pages[i][j])
				pages[i][j] = &parents;
	if (own)
		*own = 1;
}

__attribute__((constructor)) static void watch_forks(void)
{
	void *page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page != MAP_FAILED && madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) == 0) {
		own = page;
		*own = 1;
	}
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

struct rs *rs_new(int domain, const struct rs_options *options)
{
	struct rs *rs = calloc(1, sizeof(*rs));

	if (!rs)
		return NULL;
	rs->channel = rdma_create_event_channel();
	if (!rs->channel) {
		free(rs);
		return NULL;
	}
	fcntl(rs->channel->fd, F_SETFL, fcntl(rs->channel->fd, F_GETFL) | O_NONBLOCK);
	pthread_mutex_init(&rs->lock, NULL);
	rs->fd = rs->channel->fd;
	rs->file = rs_file_of(rs->fd);
	rs->second = -1;
	rs->references = 1;
	rs->domain = domain;
	rs->options = *options;
	rs->backlog.last = &rs->backlog.first;
	return rs;
}

int rs_enter(struct rs *rs)
{
	struct rs **entry;
	int page = rs->fd / PER_PAGE;

	if (page >= PAGES)
		return rs_fail(EMFILE);
	pthread_mutex_lock(&table_lock);
	if (!pages[page])
		pages[page] = calloc(PER_PAGE, sizeof(*pages[page]));
	entry = entry_of(rs->fd);
	if (entry)
		*entry = rs;
	pthread_mutex_unlock(&table_lock);
	return entry ? 0 : rs_fail(ENOMEM);
}

struct rs *rs_hold(int fd)
{
	struct rs **entry, *rs = NULL;

	pthread_mutex_lock(&table_lock);
	entry = entry_of(fd);
	if (entry && *entry && !is_parents(*entry)) {
		rs = *entry;
		rs->references++;
	}
	pthread_mutex_unlock(&table_lock);
	if (!rs)
		errno = EBADF;
	return rs;
}

struct rs *rs_take(int fd)
{
	struct rs *rs;

	rs_block_signals();
	rs = rs_hold(fd);
	if (!rs) {
		rs_unblock_signals();
		return NULL;
	}
	pthread_mutex_lock(&rs->lock);
	if (rs_is_connecting(rs)) /* a non-blocking socket continues to connect in any call */
		rs_take_events(rs);
	return rs;
}

void rs_release(struct rs *rs)
{
	bool last;

	pthread_mutex_lock(&table_lock);
	last = --rs->references == 0;
	pthread_mutex_unlock(&table_lock);
	if (last)
		rs_free(rs);
}

void rs_drop(struct rs *rs)
{
	pthread_mutex_unlock(&rs->lock);
	rs_release(rs);
	rs_unblock_signals();
}

void rs_leave_table(struct rs *rs)
{
	struct rs **entry;

	pthread_mutex_lock(&table_lock);
	entry = entry_of(rs->fd);
	if (entry && *entry == rs)
		*entry = NULL;
	pthread_mutex_unlock(&table_lock);
}

bool rs_inherited(int fd)
{
	struct rs **entry;
	bool inherited;

	rs_block_signals();
	pthread_mutex_lock(&table_lock);
	entry = entry_of(fd);
	inherited = entry && is_parents(*entry);
	if (inherited)
		*entry = NULL;
	pthread_mutex_unlock(&table_lock);
	rs_unblock_signals();
	return inherited;
}

void rs_free(struct rs *rs)
{
	int before = errno;

	rs_release_queues(rs);
	if (rs->kind)
		rs->kind->free(rs);
	if (rs->second >= 0 && rs_is_open(&rs->file)) /* otherwise the program has closed all descriptors */
		rs_raw_close(rs->second);
	if (rs->id)
		rdma_destroy_id(rs->id);
	rdma_destroy_event_channel(rs->channel);
	pthread_mutex_destroy(&rs->lock);
	free(rs->route);
	free(rs);
	errno = before;
}
