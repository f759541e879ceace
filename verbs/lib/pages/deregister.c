//go:build c_only
/* Deregistration: take the region's count off its pages, and let those go that
 * no other registration holds. */
#include <errno.h>

#include "internal.h"
#include "sys.h"

struct uncount {
	int file;
	struct window window;
	struct maps maps;
};

static bool all_counted(int file, uint64_t first, uint64_t last)
{
	for (uint64_t at = first; at < last; at += PAGE) {
		struct block *b = table_find(file, at);
		unsigned i = (unsigned)(at / PAGE % BLOCK_PAGES);
		unsigned stop = BLOCK_PAGES;
		for (; b && i < stop && at < last; i++, at += PAGE)
			if (!(b->page[i] & P_COUNT))
				return false;
		if (!b)
			return false;
		at -= PAGE;
	}
	return true;
}

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
	if (b->file != (uint32_t)u->file)
		return;
	for (unsigned i = from; i < to; i++)
		entry_set(b, i, b->page[i] - 1);
	pages_release(&u->window, &u->maps, b, from, to);
	punch_unmapped(b, from, to);
	table_drop_if_empty(b);
}

static int uncount(int file, uint64_t first, uint64_t last)
{
	struct uncount u = { .file = file };
	if (!all_counted(file, first, last))
		return EINVAL;
	int err = maps_open(&u.maps);
	if (err)
		return -err;
	window_open(&u.window);
	table_each(first, last, uncount_block, &u);
	pages_retry_kept(&u.window, &u.maps);
	window_close(&u.window);
	maps_close(&u.maps);
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
