//go:build c_only
/*
 * Memory that is shared from birth: pages of a memfd at the offset of their address, as
 * registered ones are, and idle. Registering them moves nothing, so it needs neither
 * userfaultfd nor a page that nobody has pinned.
 *
 * urdma_alloc gives it to programs. With URDMA_SHARE_MALLOC what they take from malloc
 * (../malloc) and mmap is that, too, if it is large. Then pages come to exist as they are
 * written to, as they would elsewhere, so there may be holes among them (run.sparse).
 *
 * A program that forks beside other threads has its children copy it, each time: once it
 * has done so, no more is made.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "internal.h"
#include "kernel/sys.h"

#define EXPORT __attribute__((visibility("default")))
#define LEAST_SHARED (UINT64_C(128) << 10) /* of malloc and mmap, bytes */

static uint64_t most; /* bytes that malloc and mmap share: 0 none */

static uint64_t page_up(uint64_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

/* A memfd that has nothing at these offsets, or -1. */
static int free_file(uint64_t start, uint64_t end)
{
	const char *why;
	for (int f = 0; f < FILES; f++)
		if (table_free_in(f, start, end))
			return memfd_ready(f, &why) < 0 ? -1 : f;
	return -1;
}

static bool make_entries(int file, uint64_t start, uint64_t end)
{
	for (uint64_t at = start; at < end; at = (at & ~(BLOCK - 1)) + BLOCK)
		if (!table_make(file, at))
			return false;
	for (uint64_t at = start; at < end; at += PAGE) {
		struct block *b = table_find(file, at);
		entry_set(b, (unsigned)((at - b->start) / PAGE), P_PRESENT | P_IDLE);
	}
	return true;
}

static bool may_share(void)
{
	const struct state *s = &urdma_pages_state;
	return s->usable && !s->refused && !s->forks;
}

/* Puts pages of a memfd in the place of a private mapping of which nobody knows yet.
 * False: it stays what it is. */
static bool share(uint64_t start, uint64_t len)
{
	int file = may_share() && start + len <= URDMA_PAGES_FILE_SIZE ? free_file(start, start + len) : -1;
	struct run r = { .addr = start, .len = len, .fd = file < 0 ? -1 : memfd_get(file) };
	if (r.fd < 0 || !make_entries(file, start, start + len))
		return false;
	if (map_shared_over(&r))
		return true;
	pages_gone(start, start + len);
	return false;
}

/* Whether malloc and mmap may share as much more. */
static bool within(uint64_t len)
{
	return len <= most && urdma_pages_state.present * PAGE <= most - len;
}

void alloc_share_mapping(uint64_t start, uint64_t len, bool populate)
{
	struct held held;
	if (len < LEAST_SHARED || !__atomic_load_n(&most, __ATOMIC_RELAXED) || !pages_lock_unless_forking(&held))
		return;
	if (within(len) && share(start, len) && populate)
		sys_madvise(start, len, MADV_POPULATE_WRITE);
	pages_unlock_all(&held);
}

/* Private memory in the arena, all zeros: false without memory. */
static bool map_private(uint64_t at, uint64_t len)
{
	return !sys_failed(sys_mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

/* Gives the memory back to the system, and its addresses where the kernel has a mapping
 * left to say so. */
static void unmap(uint64_t at, uint64_t len)
{
	if (sys_failed(sys_mmap(at, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0)))
		sys_madvise(at, len, MADV_DONTNEED);
	pages_gone(at, at + len);
}

static uint64_t default_size(void)
{
	struct sysinfo info;
	return sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : 0;
}

/* Of whole pages; NULL: there are no more. */
static void *take(uint64_t len, uint64_t align, bool or_private)
{
	if (len >= LEAST_HUGE && align < BLOCK)
		align = BLOCK;
	uint64_t at = arena_make(most ? most : default_size()) ? arena_take(len, align) : 0;
	if (!at)
		return NULL;
	if (share(at, len) || (or_private && map_private(at, len)))
		return (void *)at;
	arena_give(at);
	return NULL;
}

static void give(uint64_t at)
{
	uint64_t len = arena_length(at);
	unmap(at, len);
	if (arena_owns(at))
		arena_give(at);
}

/* All of it exists, as huge pages where it is large: false without memory. */
static bool enter(uint64_t at, uint64_t len)
{
	struct run r = { .addr = at, .len = len, .fd = -1, .sparse = true };
	for (int f = 0; f < FILES; f++) {
		struct block *b = table_find(f, at);
		if (b && (b->page[(at - b->start) / PAGE] & P_PRESENT))
			r.fd = memfd_get(f);
	}
	if (r.fd >= 0)
		swap_enter(&r);
	long err = sys_madvise(at, len, MADV_POPULATE_WRITE);
	return !sys_failed(err) || err == -EINVAL; /* Linux before 5.14 */
}

EXPORT void *urdma_alloc(size_t bytes)
{
	struct held held;
	uint64_t len = page_up(bytes ? bytes : 1);
	urdma_pages_init();
	if (len < bytes || !pages_lock_unless_forking(&held)) {
		errno = len < bytes ? ENOMEM : EAGAIN;
		return NULL;
	}
	void *p = take(len, 1, true);
	if (p && !enter((uint64_t)p, len)) {
		give((uint64_t)p);
		p = NULL;
	}
	pages_unlock_all(&held);
	if (!p)
		errno = ENOMEM;
	return p;
}

EXPORT void urdma_free(void *p)
{
	struct held held;
	uint64_t at = (uint64_t)p;
	if (!p)
		return;
	pages_lock_table(&held);
	if (at % PAGE == 0 && arena_has(at, at + PAGE) && arena_length(at))
		give(at);
	pages_unlock_table(&held);
}

/* A number of bytes with K, M, G or T behind it. */
static uint64_t parse_size(const char *text)
{
	static const char units[] = "KMGT";
	char *after;
	uint64_t n = strtoull(text, &after, 10);
	for (unsigned i = 0; *after && units[i]; i++)
		if (*after == units[i])
			return n << 10 * (i + 1);
	return n;
}

/* For ../malloc: from how many bytes on urdma_malloc is asked. */
EXPORT size_t urdma_malloc_least(void)
{
	const char *wish = getenv("URDMA_SHARE_MALLOC");
	urdma_pages_init();
	if (!wish || !*wish || (wish[0] == '0' && !wish[1]) || urdma_pages_state.seen_least == UINT64_MAX)
		return SIZE_MAX;
	__atomic_store_n(&most, wish[0] == '1' && !wish[1] ? default_size() : parse_size(wish), __ATOMIC_RELAXED);
	return LEAST_SHARED;
}

/* Zeroed memory that is shared, for align a power of two; NULL: let it be ordinary. */
EXPORT void *urdma_malloc(size_t bytes, size_t align)
{
	struct held held;
	uint64_t len = page_up(bytes);
	void *p = NULL;
	if (len < bytes || !pages_lock_unless_forking(&held))
		return NULL;
	if (within(len))
		p = take(len, align, false);
	pages_unlock_all(&held);
	return p;
}

/* What memory of urdma_malloc holds; 0: it isn't of it. */
EXPORT size_t urdma_malloc_size(const void *p)
{
	uint64_t at = (uint64_t)p;
	return arena_has(at, at + 1) ? arena_length(at) : 0;
}

/* Whether memory of urdma_malloc has room for so many bytes, or has it now, where it is. */
EXPORT bool urdma_malloc_resize(void *p, size_t bytes)
{
	struct held held;
	uint64_t at = (uint64_t)p, had = arena_length(at), len = page_up(bytes);
	if (bytes <= had || len < bytes)
		return bytes <= had;
	if (!arena_owns(at) || !pages_lock_unless_forking(&held))
		return false;
	bool grows = arena_room(at) >= len - had && within(len - had) && share(at + had, len - had);
	if (grows)
		arena_grow(at, len);
	pages_unlock_all(&held);
	return grows;
}
