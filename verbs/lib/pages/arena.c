//go:build c_only
/*
 * The addresses of memory that is shared from birth (alloc.c): one range, so that a
 * comparison says whose a pointer is. Its pages belong to extents, free or not, and
 * of each extent the first and the last page have its length in a table aside, so
 * that neighbours are found both ways.
 *
 * All of it is under the table lock, but for the ranges themselves, which never change.
 * A child's table may be torn, but for the lengths of extents that are in use. So a child
 * gives back what it inherits, and takes from an arena of its own.
 */
#include <sys/mman.h>

#include "internal.h"
#include "kernel/sys.h"

#define IN_USE (1u << 31)
#define FIRST (1u << 30) /* page of an extent in use */
#define LENGTH (FIRST - 1)
#define MOST (UINT64_C(1) << 42) /* bytes, for lengths */
enum { GENERATIONS = 8 }; /* of processes that forked and took more */

struct arena {
	uint64_t start, end;
	uint32_t *tag; /* of each page */
};

static struct arena all[GENERATIONS];
static unsigned made;       /* of all; read without lock */
static struct arena *own;   /* the last, unless it is a parent's */
static uint64_t rover;      /* the extent of own where the next search begins */

static void set_extent(uint64_t first, uint64_t pages, uint32_t flag)
{
	if (!pages)
		return;
	own->tag[first + pages - 1] = (uint32_t)pages | flag;
	own->tag[first] = (uint32_t)pages | flag | (flag ? FIRST : 0);
}

static bool reserve_range(struct arena *a, uint64_t bytes)
{
	long at = sys_mmap(0, bytes + BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sys_failed(at))
		return false;
	a->tag = own_memory(bytes / PAGE * sizeof *a->tag); /* its pages come to exist as they are used */
	if (!a->tag) {
		sys_munmap((uint64_t)at, bytes + BLOCK);
		return false;
	}
	a->start = ((uint64_t)at + BLOCK - 1) & ~(BLOCK - 1);
	a->end = a->start + bytes;
	return true;
}

/* Addresses for so many bytes, once: false where there are none to be had. */
bool arena_make(uint64_t bytes)
{
	if (own)
		return true;
	bytes = (bytes < MOST ? bytes : MOST) & ~(BLOCK - 1);
	if (!bytes || made == GENERATIONS || !reserve_range(&all[made], bytes))
		return false;
	own = &all[made];
	rover = 0;
	set_extent(0, bytes / PAGE, 0);
	__atomic_store_n(&made, made + 1, __ATOMIC_RELEASE);
	return true;
}

static const struct arena *arena_of(uint64_t from, uint64_t to)
{
	unsigned n = __atomic_load_n(&made, __ATOMIC_ACQUIRE);
	for (unsigned i = 0; i < n; i++)
		if (from >= all[i].start && to <= all[i].end)
			return &all[i];
	return NULL;
}

bool arena_has(uint64_t from, uint64_t to)
{
	return arena_of(from, to) != NULL;
}

/* The address of len bytes of the free extent at i, which is cut to them. */
static bool cut(uint64_t i, uint64_t len, uint64_t align, uint64_t *at)
{
	uint64_t pages = len / PAGE, end = i + (own->tag[i] & LENGTH);
	*at = (own->start + i * PAGE + align - 1) & ~(align - 1);
	uint64_t first = (*at - own->start) / PAGE;
	if ((own->tag[i] & IN_USE) || first > end || pages > end - first)
		return false;
	set_extent(i, first - i, 0);
	set_extent(first, pages, IN_USE);
	set_extent(first + pages, end - first - pages, 0);
	rover = first;
	return true;
}

/* The address of len bytes, whole pages, that nobody has; 0: there are none. */
uint64_t arena_take(uint64_t len, uint64_t align)
{
	uint64_t pages = (own->end - own->start) / PAGE, at, next;
	for (uint64_t i = rover, seen = 0; seen < pages; seen += next, i = i + next < pages ? i + next : 0) {
		next = own->tag[i] & LENGTH;
		if (cut(i, len, align, &at))
			return at;
	}
	return 0;
}

/* Bytes of the extent in use that begins at an address of an arena; 0: none does. */
uint64_t arena_length(uint64_t at)
{
	const struct arena *a = arena_of(at, at + PAGE);
	uint32_t tag = a->tag[(at - a->start) / PAGE];
	return tag & FIRST ? (tag & LENGTH) * PAGE : 0;
}

/* Whether an address is of the process's own arena, and not of a parent's. */
bool arena_owns(uint64_t at)
{
	return own && own == arena_of(at, at + PAGE);
}

/* An extent of the own arena is free again, as one with its neighbours. */
void arena_give(uint64_t at)
{
	uint64_t first = (at - own->start) / PAGE, end = first + (own->tag[first] & LENGTH);
	set_extent(first, end - first, 0); /* a second time it is seen */
	if (first && !(own->tag[first - 1] & IN_USE))
		first -= own->tag[first - 1] & LENGTH;
	if (end < (own->end - own->start) / PAGE && !(own->tag[end] & IN_USE))
		end += own->tag[end] & LENGTH;
	set_extent(first, end - first, 0);
	rover = first;
}

/* Bytes that nobody has behind an extent of the own arena. */
uint64_t arena_room(uint64_t at)
{
	uint64_t end = (at + arena_length(at) - own->start) / PAGE;
	bool none = end == (own->end - own->start) / PAGE || (own->tag[end] & IN_USE);
	return none ? 0 : (own->tag[end] & LENGTH) * PAGE;
}

/* The extent takes of that until it has len bytes. */
void arena_grow(uint64_t at, uint64_t len)
{
	uint64_t first = (at - own->start) / PAGE, end = first + len / PAGE;
	uint64_t stop = (at + arena_length(at) + arena_room(at) - own->start) / PAGE;
	set_extent(first, end - first, IN_USE);
	set_extent(end, stop - end, 0);
	rover = first;
}

/* In a child. */
void arena_inherit(void)
{
	own = NULL;
}
