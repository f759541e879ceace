//go:build c_only
/* Deregistration: the last one of a range takes its count off the pages, and lets
 * those go that no other range holds. */
#include <errno.h>

#include "internal.h"
#include "kernel/sys.h"

struct uncount {
	int file;
	bool keep; /* what can stay does, see keep.c */
	struct window window;
	struct maps maps;
};

/* Pages whose addresses are gone: nothing to give back. */
static void punch_unmapped(struct block *b, unsigned from, unsigned to)
{
	const uint32_t mask = P_PRESENT | P_FORKED | P_COUNT;
	int fd = memfd_get((int)b->file);
	for (unsigned end; block_run(b, &from, &end, to, mask, 0); from = end) {
		if (fd >= 0)
			sys_punch(fd, block_addr(b, from), (end - from) * PAGE);
		for (unsigned i = from; i < end; i++)
			entry_set(b, i, 0);
	}
}

static void uncount_block(struct block *b, unsigned from, unsigned to, void *arg)
{
	struct uncount *u = arg;
	uint32_t part = arena_has(b->start, b->start + BLOCK) ? P_PARTIAL : 0;
	const uint32_t mask = P_PRESENT | (P_PARTIAL & ~part) | P_COUNT;
	if (b->file != (uint32_t)u->file)
		return;
	for (unsigned i = from; i < to; i++) {
		uint32_t e = b->page[i] - 1;
		bool idle = u->keep && (e & mask) == P_PRESENT;
		entry_set(b, i, idle ? (e & ~part) | P_IDLE : e);
	}
	punch_unmapped(b, from, to);
	pages_release(&u->window, &u->maps, b, from, to);
	table_drop_if_empty(b);
}

static int uncount(int file, uint64_t first, uint64_t last)
{
	struct uncount u = { .file = file };
	struct range *r = range_find(file, first, last);
	if (!r)
		return EINVAL;
	if (r->count > 1) {
		r->count--;
		return 0;
	}
	int err = pages_open_maps(&u.maps);
	if (err)
		return -err;
	range_drop(r);
	u.keep = keep_wanted(&u.maps, first, last);
	window_open(&u.window);
	table_each(first, last, uncount_block, &u);
	pages_retry_kept(&u.window, &u.maps);
	window_close(&u.window);
	pages_close_maps(&u.maps);
	return 0;
}

int urdma_pages_deregister(const struct urdma_region *r)
{
	struct held held;
	if (r->path == URDMA_PATH_FALLBACK)
		return 0;
	if (r->file_id < 0 || r->file_id >= FILES || r->length == 0)
		return EINVAL;
	uint64_t first = r->addr & ~(PAGE - 1);
	uint64_t last = (r->addr + r->length + PAGE - 1) & ~(PAGE - 1);
	pages_lock_all(&held);
	int err = uncount(r->file_id, first, last);
	pages_unlock_all(&held);
	return err;
}
