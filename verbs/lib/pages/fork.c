//go:build c_only
/*
 * fork(2). A child must see its own copy, as of the fork, of every converted
 * page: heap metadata lives there. glibc's fork works on it in the child and
 * in the parent (unlocking the arenas and stdio) before any handler of ours
 * can run, so the copy can't be left to the child. Instead the pages are
 * private memory while the kernel forks, and return to the memfd afterwards:
 *
 *   prepare  swap out, keeping a snapshot of what the memfd held
 *   kernel   the child shares the private pages, copy on write
 *   parent   swap in; what this process changed since the snapshot is merged
 *            into the memfd, and what the daemon wrote meanwhile stays
 *
 * Where the swap would take too much memory (twice what is registered), or
 * would fail other threads' system calls (userfaultfd for user mode only), the
 * pages that registrations cover wholly go another way: they hold the program's
 * data and not the allocator's, so they stay shared through the fork, and the
 * child copies them while the parent's handler waits. Writes of other threads
 * in that moment may or may not be in the child's copy. Without any
 * userfaultfd, threaded, every page goes that way.
 *
 * The registry lock is held from prepare to the end; see internal.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "internal.h"
#include "sys.h"

/* Above this, only partly covered pages are swapped. */
#define SWAP_LIMIT_PAGES ((UINT64_C(256) << 20) / PAGE)

struct forking {
	struct walk walk; /* first: the callbacks find us by it */
	struct window window;
	bool swap_part, swap_whole; /* pages covered partly, wholly */
	bool child_copies;
};

static int child_done[2] = { -1, -1 };

static void *snapshot_for(struct block *b, unsigned from)
{
	if (!b->snapshot) {
		long r = sys_mmap(0, BLOCK, PROT_READ | PROT_WRITE,
		                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		                  -1, 0);
		if (sys_failed(r))
			return NULL;
		b->snapshot = (void *)r;
	}
	return (char *)b->snapshot + from * PAGE;
}

static bool swap_for_fork(struct forking *f, struct block *b, unsigned from,
                          unsigned to, const struct vma *v)
{
	struct run r = run_of(b, from, to);
	uint32_t e = b->page[from];
	if (e & P_PARTIAL ? !f->swap_part : !f->swap_whole)
		return false;
	void *snapshot = snapshot_for(b, from);
	if (r.fd < 0 || !snapshot ||
	    swap_out(&f->window, &r, v->prot, e & P_SHADOW, snapshot) != 0)
		return false;
	for (unsigned i = from; i < to; i++)
		entry_set(b, i, (b->page[i] & ~(P_PRESENT | P_SHADOW)) | P_FORKED);
	return true;
}

static void before_fork(struct walk *k, struct block *b, unsigned from,
                        unsigned to, const struct vma *v)
{
	struct forking *f = (struct forking *)k;
	if (swap_for_fork(f, b, from, to, v))
		return;
	sys_madvise(block_addr(b, from), (to - from) * PAGE, MADV_DOFORK);
	f->child_copies = true;
}

static void leave_alone(struct walk *k, struct block *b, unsigned from,
                        unsigned to, const struct vma *v)
{
	(void)k, (void)b, (void)from, (void)to, (void)v;
}

static void open_child_done(void)
{
	child_done[0] = child_done[1] = -1;
	sys6(SYS_pipe2, (long)child_done, O_CLOEXEC, 0, 0, 0, 0);
}

static void close_child_done(int side)
{
	if (child_done[side] >= 0)
		sys_close(child_done[side]);
	child_done[side] = -1;
}

static void prepare_pages(void)
{
	struct maps m;
	struct forking f = {
		.walk = { .maps = &m, .mask = P_PRESENT | P_NOFORK,
		          .want = P_PRESENT, .mapped = before_fork,
		          .other = leave_alone },
	};
	if (maps_open(&m) != 0)
		return;
	window_open(&f.window);
	f.swap_whole = urdma_pages_state.present <= SWAP_LIMIT_PAGES &&
	               (f.window.kind == WINDOW_ALONE ||
	                f.window.kind == WINDOW_FULL);
	f.swap_part = f.window.kind != WINDOW_NONE;
	table_each(0, URDMA_PAGES_FILE_SIZE, walk_block, &f.walk);
	window_close(&f.window);
	maps_close(&m);
	if (f.child_copies)
		open_child_done();
}

void pages_fork_prepare(void)
{
	struct held held;
	pages_lock_all(&held);
	if (urdma_pages_state.present)
		prepare_pages();
	pages_unlock_table(&held); /* and keep the registry */
}

static void unmark(struct block *b, unsigned from, unsigned to, uint32_t set)
{
	for (unsigned i = from; i < to; i++)
		entry_set(b, i, (b->page[i] & ~P_FORKED) | set);
}

static void mark_heads(struct block *b, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		if (b->page[i] & P_HEAD)
			sys_madvise(block_addr(b, i), PAGE, MADV_RANDOM);
}

/* The private pages are where they were put: back to the memfd. */
static bool swap_back(struct forking *f, struct block *b, unsigned from,
                      unsigned to, int prot, bool *shadowed)
{
	struct run r = run_of(b, from, to);
	const int rw = PROT_READ | PROT_WRITE;
	const char *before = (const char *)b->snapshot + from * PAGE;
	if (r.fd < 0 || (prot != rw && sys_mprotect(r.addr, r.len, rw) != 0))
		return false;
	bool done = swap_in(&f->window, &r, before, shadowed) == 0;
	if (prot != rw)
		sys_mprotect(r.addr, r.len, prot);
	return done;
}

/* A mapping that isn't the memfd's: our private pages, or what the program
 * mapped instead while it forked. */
static void after_fork(struct walk *k, struct block *b, unsigned from,
                       unsigned to, const struct vma *v)
{
	struct forking *f = (struct forking *)k;
	bool shadowed = false;
	bool done = v && !v->shared &&
	            swap_back(f, b, from, to, v->prot, &shadowed);
	unmark(b, from, to,
	       done ? P_PRESENT | (shadowed ? P_SHADOW : 0) : 0);
	if (done)
		mark_heads(b, from, to);
}

static void not_after_fork(struct walk *k, struct block *b, unsigned from,
                           unsigned to, const struct vma *v)
{
	(void)k, (void)v;
	unmark(b, from, to, 0);
}

static void drop_snapshot(struct block *b, unsigned from, unsigned to, void *arg)
{
	(void)from, (void)to, (void)arg;
	if (b->snapshot)
		sys_munmap((uint64_t)b->snapshot, BLOCK);
	b->snapshot = NULL;
}

static void dontfork_again(struct block *b, unsigned from, unsigned to, void *arg)
{
	const uint32_t mask = P_PRESENT | P_NOFORK;
	(void)arg;
	for (unsigned end; block_run(b, &from, &end, to, mask, P_PRESENT);
	     from = end)
		sys_madvise(block_addr(b, from), (end - from) * PAGE,
		            MADV_DONTFORK);
}

/* The child's byte, or its end of file if it died first or never was. */
static void wait_for_child(void)
{
	char byte;
	long n;
	close_child_done(1);
	do
		n = sys_read(child_done[0], &byte, 1);
	while (n == -EINTR);
	close_child_done(0);
}

static void restore_pages(void)
{
	struct maps m;
	struct forking f = {
		.walk = { .maps = &m, .mask = P_FORKED, .want = P_FORKED,
		          .mapped = not_after_fork, .other = after_fork },
	};
	if (maps_open(&m) == 0) {
		window_open(&f.window);
		table_each(0, URDMA_PAGES_FILE_SIZE, walk_block, &f.walk);
		window_close(&f.window);
		maps_close(&m);
	}
	table_each(0, URDMA_PAGES_FILE_SIZE, drop_snapshot, NULL);
	if (child_done[0] >= 0) {
		wait_for_child();
		table_each(0, URDMA_PAGES_FILE_SIZE, dontfork_again, NULL);
	}
}

void pages_fork_parent(void)
{
	struct held held;
	pages_lock_table(&held);
	restore_pages();
	pages_unlock_all(&held);
}

static void copy_in_child(struct walk *k, struct block *b, unsigned from,
                          unsigned to, const struct vma *v)
{
	struct forking *f = (struct forking *)k;
	struct run r = run_of(b, from, to);
	if (r.fd < 0 || swap_out(&f->window, &r, v->prot,
	                         b->page[from] & P_SHADOW, NULL) != 0)
		return;
	for (unsigned i = from; i < to; i++)
		entry_set(b, i, b->page[i] & ~P_SHADOW);
}

static void drop_shadows(struct block *b, unsigned from, unsigned to, void *arg)
{
	(void)arg;
	for (unsigned end; block_run(b, &from, &end, to, P_SHADOW, P_SHADOW);
	     from = end)
		sys_munmap(shadow(block_addr(b, from)), (end - from) * PAGE);
}

static void copy_all_in_child(void)
{
	struct maps m;
	struct forking f = {
		.walk = { .maps = &m, .mask = P_PRESENT | P_NOFORK,
		          .want = P_PRESENT, .mapped = copy_in_child,
		          .other = leave_alone },
		.window = { .kind = WINDOW_ALONE, .uffd = -1 },
	};
	if (maps_open(&m) != 0)
		return;
	table_each(0, URDMA_PAGES_FILE_SIZE, walk_block, &f.walk);
	maps_close(&m);
}

/* The child owns no registration and none of its parent's files. */
void pages_fork_child(void)
{
	struct state *s = &urdma_pages_state;
	if (child_done[1] >= 0)
		copy_all_in_child();
	table_each(0, URDMA_PAGES_FILE_SIZE, drop_shadows, NULL);
	table_each(0, URDMA_PAGES_FILE_SIZE, drop_snapshot, NULL);
	table_reset();
	memfd_forget_all();
	s->shared = s->fallback = 0;
	if (child_done[1] >= 0)
		sys_write(child_done[1], "", 1);
	close_child_done(0);
	close_child_done(1);
	pthread_mutex_init(&s->table, NULL);
	pthread_mutex_init(&s->registry, NULL);
}

void pages_fork_setup(void)
{
	pthread_atfork(pages_fork_prepare, pages_fork_parent, pages_fork_child);
}

static void no_fork_block(struct block *b, unsigned from, unsigned to, void *arg)
{
	(void)arg;
	for (unsigned i = from; i < to; i++)
		if (b->page[i] && !(b->page[i] & P_PARTIAL))
			entry_set(b, i, b->page[i] | P_NOFORK);
}

void urdma_pages_fork_init(void)
{
	struct held held;
	pages_lock_all(&held);
	urdma_pages_state.fork_init = true;
	table_each(0, URDMA_PAGES_FILE_SIZE, no_fork_block, NULL);
	pages_unlock_all(&held);
}
