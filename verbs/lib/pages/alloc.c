//go:build c_only
/*
 * Memory of the arena: shared with urdmad from its first byte on, so that to register
 * it costs next to nothing and urdmad reads and writes it by itself.
 *
 * urdma_alloc gives it to programs. Of what they take from the C library's allocator
 * (../malloc) it is what asks for whole pages, as buffers of I/O do, and with
 * URDMA_SHARE_MALLOC all that is large. Then pages come to exist as they are written
 * to, as they would elsewhere.
 *
 * A program that forks beside other threads has its children copy it, each time: once it
 * has done so, its malloc shares no more.
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

enum level { OFF, PAGES, LARGE }; /* of what malloc shares; ../malloc knows them by number */

static uint64_t most;     /* bytes of the arena; 0: as the machine has */
static bool no_more;      /* of malloc's; read without lock */

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

static uint64_t size(void)
{
	struct sysinfo info;
	if (most)
		return most;
	return sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : 0;
}

/* The address of whole pages; 0: there are no more. */
static uint64_t take(uint64_t len, uint64_t align, bool *dirty)
{
	if (len >= LEAST_HUGE && align < BLOCK)
		align = BLOCK;
	return arena_make(size()) ? arena_take(len, align, dirty) : 0;
}

/* A block becomes a huge page where one page of it exists and the kernel is asked to.
 * Each such request waits for all processors, so it is for several blocks. */
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

/* All of it exists, as huge pages where it is large: false without memory. */
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

/* vm.overcommit_memory is 2: malloc is to say then that there is no memory, and not
 * the first access, as it would for a file's. */
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

/* A fork has copied, for which it takes memory again. */
void alloc_no_more(void)
{
	if (!__libc_single_threaded)
		__atomic_store_n(&no_more, true, __ATOMIC_RELAXED);
}

/* At load, with the value of URDMA_SHARE_MALLOC or NULL: what is to be shared, enum level. */
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

/* Memory that is shared, for align a power of two; NULL: let it be ordinary. Zeros if
 * that is asked for; else it may hold what somebody freed. */
EXPORT void *urdma_malloc(size_t bytes, size_t align, bool zeroed)
{
	static int allowed; /* -1: not at all */
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

/* What memory of urdma_malloc holds; 0: it isn't of it. */
EXPORT size_t urdma_malloc_size(const void *p)
{
	uint64_t at = (uint64_t)p;
	return at % PAGE == 0 && arena_has(at, at + 1) ? arena_length(at) : 0;
}

/* Whether memory of urdma_malloc has room for so many bytes, or has it now, where it is. */
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
