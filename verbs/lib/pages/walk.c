//go:build c_only
/* Walking the page table and the process's mappings side by side: what an
 * entry remembers is believed only where the mapping still says so, because
 * glibc's allocator unmaps by calls that we don't see. */
#include "internal.h"

int vma_file(const struct vma *v)
{
	const struct state *s = &urdma_pages_state;
	for (int i = 0; v->shared && v->inode && i < FILES; i++)
		if (s->inode[i] == v->inode && s->major == v->major &&
		    s->minor == v->minor)
			return i;
	return -1;
}

bool vma_is_identity(const struct vma *v)
{
	return v->offset == v->start;
}

struct run run_of(const struct block *b, unsigned from, unsigned to)
{
	return (struct run){ .addr = block_addr(b, from),
		             .len = (to - from) * PAGE,
		             .fd = memfd_get((int)b->file),
		             .pagemap = -1,
		             .sparse = (b->page[from] & (P_IDLE | P_SHADOW)) == P_IDLE };
}

static unsigned limit_to(const struct block *b, unsigned to, uint64_t stop)
{
	uint64_t pages = (stop - b->start) / PAGE;
	return pages < to ? (unsigned)pages : to;
}

/* Entries [from, to) are alike: cut them where mappings end. */
static void walk_alike(struct walk *k, struct block *b, unsigned from,
                       unsigned to)
{
	struct vma v;
	for (unsigned end; from < to; from = end) {
		uint64_t at = block_addr(b, from);
		bool hole = maps_find(k->maps, at, &v) != 0;
		if (hole)
			v.start = UINT64_MAX;
		hole |= v.start > at;
		end = limit_to(b, to, hole ? v.start : v.end);
		bool ours = !hole && vma_file(&v) == (int)b->file &&
		            vma_is_identity(&v);
		if (ours)
			k->mapped(k, b, from, end, &v);
		else
			k->other(k, b, from, end, hole ? NULL : &v);
	}
}

static bool alike(uint32_t a, uint32_t b)
{
	const uint32_t shape = P_PRESENT | P_SHADOW | P_PARTIAL | P_NOFORK |
	                       P_IDLE;
	return (a & shape) == (b & shape) && !(a & P_COUNT) == !(b & P_COUNT);
}

/* A block_fn: the callbacks of *walk for each run of alike entries that match
 * its mask. They may change the entries they are given. */
void walk_block(struct block *b, unsigned from, unsigned to, void *walk)
{
	struct walk *k = walk;
	for (unsigned end; from < to; from = end) {
		uint32_t e = b->page[from];
		end = from + 1;
		if ((e & k->mask) != k->want)
			continue;
		while (end < to && alike(b->page[end], e) &&
		       (b->page[end] & k->mask) == k->want)
			end++;
		walk_alike(k, b, from, end);
	}
}
