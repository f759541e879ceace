//go:build c_only
/*
 * The page table: for each memfd and page, how many registered ranges cover it
 * and what state it is in. A hash of blocks of 512 entries, in memory of its own
 * (never the program's allocator, which may be calling us).
 */
#include <sys/mman.h>

#include "internal.h"
#include "kernel/sys.h"

enum { FIRST_BUCKETS = 512, SLAB = 64 * 1024 };

static struct block **buckets;
static size_t bucket_count, block_count;
static struct block *spare;

void *own_memory(size_t bytes)
{
	long r = sys_mmap(0, bytes, PROT_READ | PROT_WRITE,
	                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return sys_failed(r) ? NULL : (void *)r;
}

static size_t bucket_of(uint32_t file, uint64_t start)
{
	uint64_t h = (start / BLOCK * FILES + file) * UINT64_C(0x9E3779B97F4A7C15);
	return (size_t)(h >> 32) & (bucket_count - 1);
}

struct block *table_find(int file, uint64_t addr)
{
	uint64_t start = addr & ~(BLOCK - 1);
	if (!buckets)
		return NULL;
	struct block *b = buckets[bucket_of((uint32_t)file, start)];
	while (b && (b->start != start || b->file != (uint32_t)file))
		b = b->next;
	return b;
}

static void insert(struct block *b)
{
	struct block **head = &buckets[bucket_of(b->file, b->start)];
	b->next = *head;
	*head = b;
}

static bool grow(void)
{
	size_t old_count = bucket_count;
	struct block **old = buckets;
	size_t count = old_count ? old_count * 4 : FIRST_BUCKETS;
	struct block **fresh = own_memory(count * sizeof *fresh);
	if (!fresh)
		return old != NULL; /* a crowded table still works */
	buckets = fresh;
	bucket_count = count;
	for (size_t i = 0; i < old_count; i++)
		for (struct block *b = old[i], *next; b; b = next) {
			next = b->next;
			insert(b);
		}
	if (old)
		sys_munmap((uint64_t)old, old_count * sizeof *old);
	return true;
}

static struct block *take_spare(void)
{
	if (!spare) {
		struct block *slab = own_memory(SLAB);
		for (size_t i = 0; slab && i < SLAB / sizeof *slab; i++) {
			slab[i].next = spare;
			spare = &slab[i];
		}
	}
	struct block *b = spare;
	if (b)
		spare = b->next;
	return b;
}

/* Finds or adds; NULL without memory. A fresh block's entries are all 0: so
 * they were when it was dropped. */
struct block *table_make(int file, uint64_t addr)
{
	struct block *b = table_find(file, addr);
	if (b)
		return b;
	if (block_count >= bucket_count && !grow())
		return NULL;
	b = take_spare();
	if (!b)
		return NULL;
	b->start = addr & ~(BLOCK - 1);
	b->file = (uint32_t)file;
	insert(b);
	block_count++;
	return b;
}

void table_drop_if_empty(struct block *b)
{
	if (b->live)
		return;
	struct block **at = &buckets[bucket_of(b->file, b->start)];
	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	b->next = spare;
	spare = b;
	block_count--;
}

/* A forked child owns no registration. */
void table_reset(void)
{
	for (size_t i = 0; i < bucket_count; i++)
		for (struct block *b = buckets[i], *next; b; b = next) {
			next = b->next;
			for (unsigned p = 0; p < BLOCK_PAGES; p++)
				b->page[p] = 0;
			b->live = 0;
			b->snapshot = NULL;
			b->next = spare;
			spare = b;
		}
	for (size_t i = 0; i < bucket_count; i++)
		buckets[i] = NULL;
	block_count = 0;
	urdma_pages_state.present = urdma_pages_state.kept = 0;
	urdma_pages_state.idle = 0;
	range_reset();
}

/* Every change of an entry goes through here: it keeps the counts true. */
void entry_set(struct block *b, unsigned i, uint32_t value)
{
	uint32_t old = b->page[i];
	struct state *s = &urdma_pages_state;
	uint64_t present = s->present;
	present -= !!(old & P_PRESENT);
	present += !!(value & P_PRESENT);
	__atomic_store_n(&s->present, present, __ATOMIC_RELEASE);
	const uint32_t free = P_PRESENT | P_IDLE | P_COUNT;
	s->kept -= (old & free) == P_PRESENT;
	s->kept += (value & free) == P_PRESENT;
	s->idle -= !!(old & P_IDLE);
	s->idle += !!(value & P_IDLE);
	b->live -= old != 0;
	b->live += value != 0;
	b->page[i] = value;
	s->changes++;
}

static unsigned index_in(const struct block *b, uint64_t addr)
{
	if (addr <= b->start)
		return 0;
	uint64_t i = (addr - b->start) / PAGE;
	return i > BLOCK_PAGES ? BLOCK_PAGES : (unsigned)i;
}

static void each_stored(uint64_t start, uint64_t end, block_fn fn, void *arg)
{
	for (size_t i = 0; i < bucket_count; i++)
		for (struct block *b = buckets[i], *next; b; b = next) {
			next = b->next; /* fn may drop b */
			unsigned from = index_in(b, start), to = index_in(b, end);
			if (from < to)
				fn(b, from, to, arg);
		}
}

/* Calls fn for every block of every file that meets [start, end) with the
 * range of its entries; walks the addresses or the table, whichever is less. */
void table_each(uint64_t start, uint64_t end, block_fn fn, void *arg)
{
	uint64_t first = start & ~(BLOCK - 1);
	if (start >= end)
		return;
	if ((end - first) / BLOCK * FILES > bucket_count + block_count) {
		each_stored(start, end, fn, arg);
		return;
	}
	for (uint64_t at = first; at < end; at += BLOCK)
		for (int f = 0; f < FILES; f++) {
			struct block *b = table_find(f, at);
			if (b)
				fn(b, index_in(b, start), index_in(b, end), arg);
		}
}

bool table_free_in(int file, uint64_t start, uint64_t end)
{
	for (uint64_t at = start; at < end; at = (at & ~(BLOCK - 1)) + BLOCK) {
		struct block *b = table_find(file, at);
		unsigned to = b ? index_in(b, end) : 0;
		for (unsigned i = b ? index_in(b, at) : 0; i < to; i++)
			if (b->page[i])
				return false;
	}
	return true;
}

/* The next run of entries with (entry & mask) == want in [*from, limit). */
bool block_run(const struct block *b, unsigned *from, unsigned *to,
               unsigned limit, uint32_t mask, uint32_t want)
{
	unsigned i = *from;
	while (i < limit && (b->page[i] & mask) != want)
		i++;
	*from = i;
	while (i < limit && (b->page[i] & mask) == want)
		i++;
	*to = i;
	return *from < i;
}
