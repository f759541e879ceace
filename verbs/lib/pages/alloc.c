//go:build c_only
/*
 * Allocation of memory from the arena, which is shared with urdmad from the start: registering it costs
 * almost nothing, and urdmad accesses it directly.
 *
 * Programs call urdma_alloc. The malloc library (../malloc) takes allocations of whole pages from here,
 * such as I/O buffers, and with URDMA_SHARE_MALLOC all large ones. Their pages are allocated when they are
 * first written, as in other memory.
 *
 * If a program forks while it has several threads, each child has to copy the arena. After the first such
 * fork malloc shares no more memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/sysinfo.h>

#include "alloc.h"
#include "internal.h"
#include "kernel/sys.h"

#define EXPORT __attribute__((visibility("default")))
#define LEAST_HUGE (4 * BLOCK)
#define HUGE_AT_ONCE (16 * BLOCK)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

enum level { OFF, PAGES, LARGE }; /* what malloc shares; ../malloc uses the same numbers */

static uint64_t most;     /* size of the arena in bytes; 0: depends on the machine */
static bool no_more;      /* malloc shares no more; read without lock */

/* Parses a number of bytes with the suffix K, M, G or T. */
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

static uint64_t size(void)
{
	struct sysinfo info;
	if (most)
		return most;
	return sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : 0;
}

/* Returns the address of whole pages; 0 if there are none left. */
static uint64_t take(uint64_t len, uint64_t align, bool *dirty)
{
	if (len >= LEAST_HUGE && align < BLOCK)
		align = BLOCK;
	return arena_make(size()) ? arena_take(len, align, dirty) : 0;
}

/* A block becomes a huge page if one page of it exists and MADV_COLLAPSE is called for it. Each such call
 * waits for all processors, so it is made for several blocks at once. */
static void make_huge(uint64_t at, uint64_t end)
{
	for (uint64_t next; at + BLOCK <= end; at = next) {
		next = at + HUGE_AT_ONCE < end ? at + HUGE_AT_ONCE : end & ~(BLOCK - 1);
		for (uint64_t block = at; block < next; block += BLOCK)
			sys_madvise(block, PAGE, MADV_POPULATE_WRITE);
		if (sys_failed(sys_madvise(at, next - at, MADV_COLLAPSE)))
			return;
	}
}

/* Allocates all pages, as huge pages if the memory is large. Returns false if there is not enough memory. */
static bool populate(uint64_t at, uint64_t len)
{
	if (len >= LEAST_HUGE)
		make_huge(at, at + len);
	long err = sys_madvise(at, len, MADV_POPULATE_WRITE);
	return !sys_failed(err) || err == -EINVAL; /* Linux before 5.14 */
}

EXPORT void *urdma_alloc(size_t bytes)
{
	struct held held;
	uint64_t len = page_up(bytes ? bytes : 1), at = 0;
	bool dirty = false;
	urdma_pages_init();
	arena_lock(&held);
	if (len >= bytes)
		at = take(len, 1, &dirty);
	arena_unlock(&held);
	if (at && dirty)
		memset((void *)at, 0, len);
	if (at && populate(at, len))
		return (void *)at;
	urdma_free((void *)at);
	errno = ENOMEM;
	return NULL;
}

EXPORT void urdma_free(void *p)
{
	struct held held;
	uint64_t at = (uint64_t)p;
	if (at % PAGE || !arena_has(at, at + 1))
		return;
	arena_lock(&held);
	arena_give(at);
	arena_unlock(&held);
}

/* ---- for ../malloc ------------------------------------------------------------- */

/* Returns whether vm.overcommit_memory is 2. Then malloc must fail if memory is short; memory of a file
 * would fail only at the first access. */
static bool never_overcommits(void)
{
	char mode = '2';
	long fd = sys_open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
	if (sys_failed(fd))
		return true;
	sys_read((int)fd, &mode, 1);
	sys_close((int)fd);
	return mode == '2';
}

/* Called after a fork copied the arena: each copy takes as much memory again. */
void alloc_no_more(void)
{
	if (!__libc_single_threaded)
		__atomic_store_n(&no_more, true, __ATOMIC_RELAXED);
}

/* Called when the library is loaded, with the value of URDMA_SHARE_MALLOC or NULL. Returns what malloc
 * shares (enum level). */
EXPORT int urdma_malloc_begin(const char *wish)
{
	urdma_pages_init();
	if (wish && wish[0] == '0' && !wish[1])
		return OFF;
	if (!wish || !*wish)
		return PAGES;
	if (wish[0] != '1' || wish[1])
		most = parse_size(wish);
	return LARGE;
}

/* Allocates shared memory; align is a power of two. NULL: the caller must allocate ordinary memory. It
 * contains zeros if zeroed is set, otherwise possibly old data. */
EXPORT void *urdma_malloc(size_t bytes, size_t align, bool zeroed)
{
	static int allowed; /* -1: malloc may not share */
	struct held held;
	uint64_t len = page_up(bytes), at = 0;
	bool dirty = false;
	if (len < bytes || !len || __atomic_load_n(&no_more, __ATOMIC_RELAXED))
		return NULL;
	arena_lock(&held);
	if (!allowed)
		allowed = never_overcommits() ? -1 : 1;
	if (allowed > 0 && arena_make(size()) && arena_is_shared())
		at = take(len, align, &dirty);
	arena_unlock(&held);
	if (at && dirty && zeroed)
		memset((void *)at, 0, len);
	return (void *)at;
}

/* Returns the size of memory from urdma_malloc; 0 if p is not such memory. */
EXPORT size_t urdma_malloc_size(const void *p)
{
	uint64_t at = (uint64_t)p;
	return at % PAGE == 0 && arena_has(at, at + 1) ? arena_length(at) : 0;
}

/* Returns whether the memory has room for so many bytes, after growing it in place if possible. */
EXPORT bool urdma_malloc_resize(void *p, size_t bytes)
{
	struct held held;
	uint64_t at = (uint64_t)p, had = arena_length(at), len = page_up(bytes);
	if (bytes <= had || len < bytes)
		return bytes <= had;
	if (!arena_owns(at, at + had) || __atomic_load_n(&no_more, __ATOMIC_RELAXED))
		return false;
	arena_lock(&held);
	bool grows = arena_extend(at, len);
	arena_unlock(&held);
	return grows;
}
