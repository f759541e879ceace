//go:build c_only
/* Pages leave the memfd: given back when their last registration ends, moved
 * out when the program remaps them, dropped when it has unmapped them. */
#include <errno.h>
#include <sys/mman.h>

#include "internal.h"
#include "kernel/sys.h"

enum { MANY_BLOCKS = 1024 };

struct release {
	struct walk walk; /* first: the callbacks find us by it */
	const struct window *w;
	bool keep_count; /* the registrations go on, over nothing */
	bool failed;
	bool asked, pinned; /* once for all: pages of the process are pinned */
};

/* A page may go where nobody else can be harmed while it does. */
static bool may_swap(const struct window *w, uint32_t entry)
{
	return w->kind == WINDOW_ALONE || w->kind == WINDOW_FULL ||
	       (w->kind == WINDOW_USER_ONLY && !(entry & P_PARTIAL));
}

bool pages_pinned(void)
{
	struct memory_status now = status_of_memory();
	urdma_pages_state.none_locked = !now.locked;
	return now.pinned;
}

static bool any_pinned(struct release *x)
{
	if (!x->asked)
		x->pinned = pages_pinned();
	x->asked = true;
	return x->pinned;
}

static void forget(struct block *b, unsigned from, unsigned to)
{
	struct run r = run_of(b, from, to);
	for (unsigned i = from; i < to; i++)
		entry_set(b, i, b->page[i] & P_COUNT);
	if (r.fd >= 0)
		sys_punch(r.fd, r.addr, r.len);
}

static void drop_shadow(struct block *b, unsigned from, unsigned to)
{
	for (unsigned end; block_run(b, &from, &end, to, P_SHADOW, P_SHADOW);
	     from = end)
		sys_munmap(shadow(block_addr(b, from)), (end - from) * PAGE);
}

static void gone_in_block(struct block *b, unsigned from, unsigned to, void *arg)
{
	(void)arg;
	for (unsigned end;
	     block_run(b, &from, &end, to, P_PRESENT, P_PRESENT); from = end) {
		drop_shadow(b, from, end);
		forget(b, from, end);
	}
	urdma_pages_state.emptied += !b->live;
}

/* The addresses no longer map their pages: registrations of them go on over
 * nothing (holes that read zero), and the memory returns to the system. */
void pages_gone(uint64_t start, uint64_t end)
{
	table_each(start, end, gone_in_block, NULL);
}

static bool wanted(const struct release *x, uint32_t entry)
{
	return x->keep_count || !(entry & P_COUNT);
}

/* Pages may be the stack that we run on, or go on to, which can't move. A child
 * that shared it, until it has its copy, would run over ours: it gets a hole, and
 * ends there. */
bool pages_stand_on(const struct block *b, unsigned from, unsigned to)
{
	uint64_t sp = (uint64_t)__builtin_frame_address(0);
	return block_addr(b, from) <= sp && sp < block_addr(b, to) + 4 * PAGE;
}

static void give_back(struct walk *k, struct block *b, unsigned from,
                      unsigned to, const struct vma *v)
{
	struct release *x = (struct release *)k;
	struct run r = run_of(b, from, to);
	uint32_t flags = b->page[from];
	if (!wanted(x, flags))
		return;
	if (r.fd < 0 || pages_stand_on(b, from, to) || !may_swap(x->w, flags) || any_pinned(x) ||
	    swap_out(x->w, &r, v->prot, flags & P_SHADOW, NULL) != 0) {
		x->failed = true;
		return;
	}
	forget(b, from, to);
}

static void drop_unmapped(struct walk *k, struct block *b, unsigned from,
                          unsigned to, const struct vma *v)
{
	(void)v;
	if (wanted((struct release *)k, b->page[from]))
		gone_in_block(b, from, to, NULL);
}

static struct release releaser(const struct window *w, struct maps *m)
{
	return (struct release){
		.walk = { .maps = m, .mask = P_PRESENT | P_IDLE,
		          .want = P_PRESENT, .mapped = give_back,
		          .other = drop_unmapped },
		.w = w,
	};
}

/* Gives back the entries that no registration counts any more. */
void pages_release(const struct window *w, struct maps *m, struct block *b,
                   unsigned from, unsigned to)
{
	struct release x = releaser(w, m);
	walk_block(b, from, to, &x.walk);
}

static void retry_block(struct block *b, unsigned from, unsigned to, void *arg)
{
	walk_block(b, from, to, arg);
	table_drop_if_empty(b);
}

/* Only a holder of both locks drops blocks, and a thread that unmaps has one. */
static void drop_empty(struct block *b, unsigned from, unsigned to, void *arg)
{
	(void)from, (void)to, (void)arg;
	table_drop_if_empty(b);
}

/* Pages that could not be given back when they should have been. It walks all
 * that is registered, so not every call tries. */
void pages_retry_kept(const struct window *w, struct maps *m)
{
	struct release x = releaser(w, m);
	static unsigned calls;
	if (urdma_pages_state.emptied > MANY_BLOCKS) {
		urdma_pages_state.emptied = 0;
		table_each(0, URDMA_PAGES_FILE_SIZE, drop_empty, NULL);
	}
	if (urdma_pages_state.kept && ++calls % 64 == 0)
		table_each(0, URDMA_PAGES_FILE_SIZE, retry_block, &x.walk);
}

/* Those that stay although nobody has registered them: a process of one thread
 * forks, and its children are to have them as other private memory. */
void pages_release_idle(const struct window *w, struct maps *m)
{
	struct release x = releaser(w, m);
	x.walk.want = P_PRESENT | P_IDLE;
	table_each(0, URDMA_PAGES_FILE_SIZE, retry_block, &x.walk);
}

/* The range is about to be remapped: its content becomes ordinary private
 * memory, which may move and grow. False where that can't be done. */
bool pages_move_out(uint64_t start, uint64_t end)
{
	struct window w;
	struct maps m;
	if (pages_open_maps(&m) != 0)
		return false;
	window_open(&w);
	struct release x = releaser(&w, &m);
	x.keep_count = true;
	x.walk.mask = P_PRESENT; /* idle ones, too */
	table_each(start, end, walk_block, &x.walk);
	window_close(&w);
	pages_close_maps(&m);
	return !x.failed;
}
