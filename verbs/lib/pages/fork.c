//go:build c_only
/*
 * fork(2). A child must see its own copy of every converted page, and no thread
 * of its parent may notice: what urdmad's completion announced is there to be
 * read, and what was written before a post is what is sent, at every instant.
 *
 * Pages that registrations cover wholly hold the program's data. They stay
 * shared: the child copies them (fork_child.c) while the parent's handler waits,
 * so writes of other threads in that moment may or may not be in the copy. As
 * for pages that are pinned, a fork takes their memory once more, until the
 * child ends or runs another program.
 *
 * Pages covered in part hold the allocator's metadata, too. With threads, glibc's
 * fork works on it in the child and in the parent (unlocking the arenas and stdio)
 * before any handler of ours can run, so that copy can't be left to the child.
 * These pages are private memory while the kernel forks and return to the memfd
 * afterwards:
 *
 *   prepare  swap out, keeping a snapshot of what the memfd held
 *   kernel   the child shares the private pages, copy on write
 *   parent   swap in; what this process changed since the snapshot is merged
 *            into the memfd, and what the daemon wrote meanwhile stays
 *
 * In between, threads that take completions or post wait (fork_wait.c): they
 * would look at the old page. They can't be held at the page itself, as a
 * conversion does: one that waits inside malloc holds the lock that glibc's
 * fork takes next.
 *
 * Threaded and without any userfaultfd, the child copies every page.
 *
 * The registry lock is held from prepare to the end; see internal.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "internal.h"
#include "kernel/sys.h"

struct forking {
	struct walk walk; /* first: the callbacks find us by it */
	struct window window;
};

static bool child_copies; /* this fork's child inherits pages shared */
/* A pipe: its end of file says that the child has its copies, or died. Without
 * one (no more descriptors) nobody waits for that. */
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
	if (!(e & P_PARTIAL) || f->window.kind == WINDOW_NONE)
		return false;
	if (f->window.kind != WINDOW_ALONE)
		fork_hold(); /* before the first page is private */
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
	bool idle = b->page[from] & P_IDLE;
	if (pages_stand_on(b, from, to) || swap_for_fork(f, b, from, to, v))
		return;
	urdma_pages_state.forks |= idle;
	sys_madvise(block_addr(b, from), (to - from) * PAGE, MADV_DOFORK);
	child_copies = true;
}

void fork_leave_alone(struct walk *k, struct block *b, unsigned from,
                        unsigned to, const struct vma *v)
{
	(void)k, (void)b, (void)from, (void)to, (void)v;
}

static void open_child_done(void)
{
	child_done[0] = child_done[1] = -1;
	sys6(SYS_pipe2, (long)child_done, O_CLOEXEC, 0, 0, 0, 0);
}

bool fork_child_copies(void)
{
	return child_copies;
}

void fork_close_child_done(int side)
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
		          .other = fork_leave_alone },
	};
	if (pages_open_maps(&m) != 0)
		return;
	window_open(&f.window);
	if (urdma_pages_state.idle && f.window.kind == WINDOW_ALONE)
		pages_release_idle(&f.window, &m);
	maps_rewind(&m);
	table_each(0, URDMA_PAGES_FILE_SIZE, walk_block, &f.walk);
	window_close(&f.window);
	pages_close_maps(&m);
	if (child_copies)
		open_child_done();
}

void pages_fork_prepare(void)
{
	struct held held;
	pages_lock_all(&held);
	__atomic_store_n(&urdma_pages_state.forking, true, __ATOMIC_RELEASE);
	child_copies = false;
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

void fork_drop_snapshot(struct block *b, unsigned from, unsigned to, void *arg)
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

/* The end of file: the child is done, died first or never was. */
static void wait_for_child(void)
{
	char byte;
	long n;
	if (child_done[0] < 0)
		return;
	fork_close_child_done(1);
	do
		n = sys_read(child_done[0], &byte, 1);
	while (n == -EINTR);
	fork_close_child_done(0);
}

static void restore_pages(void)
{
	struct maps m;
	struct forking f = {
		.walk = { .maps = &m, .mask = P_FORKED, .want = P_FORKED,
		          .mapped = not_after_fork, .other = after_fork },
	};
	if (pages_open_maps(&m) == 0) {
		window_open(&f.window);
		table_each(0, URDMA_PAGES_FILE_SIZE, walk_block, &f.walk);
		window_close(&f.window);
		pages_close_maps(&m);
	}
	fork_release();
	table_each(0, URDMA_PAGES_FILE_SIZE, fork_drop_snapshot, NULL);
	if (child_copies) {
		wait_for_child();
		table_each(0, URDMA_PAGES_FILE_SIZE, dontfork_again, NULL);
	}
}

void pages_fork_parent(void)
{
	struct held held;
	pages_lock_table(&held);
	restore_pages();
	__atomic_store_n(&urdma_pages_state.forking, false, __ATOMIC_RELEASE);
	pages_unlock_all(&held);
}

void pages_fork_setup(void)
{
	pthread_atfork(pages_fork_prepare, pages_fork_parent, pages_fork_child);
}
