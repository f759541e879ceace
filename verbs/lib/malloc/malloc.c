/*
 * malloc.c - liburdma-malloc.so, which urdma exec preloads beside liburdma.so: whatever
 * allocator the program has, but that some of what it is asked for is memory of
 * liburdma.so's that is shared with urdmad from its first byte on (../pages/alloc.c), as
 * long as there is some. Those are pieces whose alignment is a page or more, as buffers
 * for I/O have it, and with URDMA_SHARE_MALLOC also those of 128 KiB and more.
 *
 * All else goes to the function that would have been called (RTLD_NEXT). Where that isn't
 * the C library's, or a function before ours takes its place, the program has brought an
 * allocator of its own (or AddressSanitizer, or a tracer): it may free memory by functions
 * that we know nothing of, so nothing is shared.
 */
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WEAK __attribute__((weak))
#define LEAST_LARGE ((size_t)128 << 10) /* bytes */
#define PAGE 4096u

/* liburdma.so's: not there where it is not preloaded, too. */
WEAK int urdma_malloc_begin(const char *wish);
WEAK void *urdma_malloc(size_t bytes, size_t align, bool zeroed);
WEAK size_t urdma_malloc_size(const void *);
WEAK bool urdma_malloc_resize(void *, size_t);
WEAK void urdma_free(void *);

enum level { OFF, PAGES, LARGE };

static enum level level; /* what is shared */
static bool any;         /* has been: a pointer may be one of them */

static struct {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	size_t (*malloc_usable_size)(void *);
	void (*free)(void *);
} next;

/* What the search for those functions asks for meanwhile. It is never freed. */
static char early[16 << 10] __attribute__((aligned(16)));
static size_t early_used;

static void *take_early(size_t bytes)
{
	size_t at = early_used;

	if (bytes > sizeof(early) - at)
		return NULL;
	early_used = at + ((bytes + 15) & ~(size_t)15);
	return early + at;
}

static bool is_early(const void *p)
{
	return (const char *)p >= early && (const char *)p < early + sizeof(early);
}

#define FIND(name) (next.name = (__typeof__(next.name))dlsym(RTLD_NEXT, #name))

/* False: the search is under way, by this thread, for the process has no other yet. */
static bool ready(void)
{
	static bool searching;

	if (__builtin_expect(next.free != NULL, 1))
		return true;
	if (searching)
		return false;
	searching = true;
	FIND(malloc);
	FIND(calloc);
	FIND(realloc);
	FIND(memalign);
	FIND(aligned_alloc);
	FIND(posix_memalign);
	FIND(valloc);
	FIND(pvalloc);
	FIND(malloc_usable_size);
	FIND(free);
	searching = false;
	return next.free != NULL;
}

/* Whether a function is the C library's. */
static bool is_libc(void *function)
{
	Dl_info of, libc;

	return function && dladdr(function, &of) && dladdr((void *)gnu_get_libc_version, &libc) && of.dli_fbase == libc.dli_fbase;
}

/* Whether who calls a function of that name calls ours. */
#define IS_OURS(name) (dlsym(RTLD_DEFAULT, #name) == (void *)own_##name)
#define OWN(name) __attribute__((alias("own_" #name)))

static void *own_malloc(size_t bytes);
static void *own_calloc(size_t n, size_t size);
static void *own_realloc(void *old, size_t bytes);
static void own_free(void *p);
static size_t own_malloc_usable_size(void *p);
void *malloc(size_t) OWN(malloc);
void *calloc(size_t, size_t) OWN(calloc);
void *realloc(void *, size_t) OWN(realloc);
void free(void *) OWN(free);
size_t malloc_usable_size(void *) OWN(malloc_usable_size);

static bool is_alone(void)
{
	return IS_OURS(malloc) && IS_OURS(calloc) && IS_OURS(realloc) && IS_OURS(free) && IS_OURS(malloc_usable_size) &&
	       is_libc((void *)next.malloc) && is_libc((void *)next.realloc) && is_libc((void *)next.free) &&
	       is_libc((void *)next.malloc_usable_size);
}

static const char *value_of(char **env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

/* It runs before the constructors of all other libraries (-z initfirst), the C library's
 * included, which getenv needs: so liburdma.so's fork handlers are the first. */
__attribute__((constructor)) static void begin(int argc, char **argv, char **env)
{
	(void)argc, (void)argv;
	if (ready() && urdma_malloc_begin && is_alone())
		level = (enum level)urdma_malloc_begin(value_of(env, "URDMA_SHARE_MALLOC"));
}

/* NULL: the next allocator is to give it. */
static void *share(size_t bytes, size_t align, bool zeroed)
{
	bool wanted = (align >= PAGE && level != OFF) || (bytes >= LEAST_LARGE && level == LARGE);
	void *p = wanted ? urdma_malloc(bytes ? bytes : 1, align, zeroed) : NULL;

	if (p)
		__atomic_store_n(&any, true, __ATOMIC_RELAXED);
	return p;
}

/* Bytes of memory that is shared; 0: the next allocator gave it. */
static size_t shared_size(const void *p)
{
	return __atomic_load_n(&any, __ATOMIC_RELAXED) ? urdma_malloc_size(p) : 0;
}

static void *own_malloc(size_t bytes)
{
	void *p;

	if (!ready())
		return take_early(bytes);
	p = share(bytes, 1, false);
	return p ? p : next.malloc(bytes);
}

static void own_free(void *p)
{
	if (shared_size(p))
		urdma_free(p);
	else if (!is_early(p) && ready())
		next.free(p);
}

static void *own_calloc(size_t n, size_t size)
{
	size_t bytes;
	bool fits = !__builtin_mul_overflow(n, size, &bytes);
	void *p;

	if (!ready())
		return fits ? take_early(bytes) : NULL; /* zeros: never used before */
	p = fits ? share(bytes, 1, true) : NULL;
	return p ? p : next.calloc(n, size);
}

static size_t own_malloc_usable_size(void *p)
{
	size_t bytes = shared_size(p);

	if (bytes)
		return bytes;
	return p && !is_early(p) && ready() ? next.malloc_usable_size(p) : 0;
}

/* To other memory: from one allocator to the other, or where there is no room behind it. */
static void *move(void *old, size_t had, size_t bytes)
{
	void *p = own_malloc(bytes);

	if (!p)
		return NULL;
	memcpy(p, old, had < bytes ? had : bytes);
	own_free(old);
	return p;
}

/* What became much smaller gives the rest back. */
static void *own_realloc(void *old, size_t bytes)
{
	size_t had = shared_size(old);

	if (!old)
		return own_malloc(bytes);
	if (is_early(old))
		return move(old, (size_t)(early + sizeof(early) - (char *)old), bytes);
	if (!had && (bytes < LEAST_LARGE || level != LARGE))
		return next.realloc(old, bytes);
	if (!bytes) {
		own_free(old);
		return NULL;
	}
	if (had && bytes >= had / 2 && urdma_malloc_resize(old, bytes))
		return old;
	return move(old, had ? had : own_malloc_usable_size(old), bytes);
}

static bool is_power_of_two(size_t n)
{
	return n && !(n & (n - 1));
}

static void *share_aligned(size_t align, size_t bytes)
{
	return ready() && is_power_of_two(align) ? share(bytes, align, false) : NULL;
}

void *memalign(size_t align, size_t bytes)
{
	void *p = share_aligned(align, bytes);

	return p || !next.memalign ? p : next.memalign(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	void *p = share_aligned(align, bytes);

	return p || !next.aligned_alloc ? p : next.aligned_alloc(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
	void *p = align % sizeof(p) ? NULL : share_aligned(align, bytes);

	if (!p)
		return next.posix_memalign ? next.posix_memalign(out, align, bytes) : ENOMEM;
	*out = p;
	return 0;
}

void *valloc(size_t bytes)
{
	void *p = share_aligned(PAGE, bytes);

	return p || !next.valloc ? p : next.valloc(bytes);
}

void *pvalloc(size_t bytes)
{
	void *p = share_aligned(PAGE, bytes);

	return p || !next.pvalloc ? p : next.pvalloc(bytes);
}

/* Of C23. */
void free_sized(void *p, size_t bytes)
{
	(void)bytes;
	own_free(p);
}

void free_aligned_sized(void *p, size_t align, size_t bytes)
{
	(void)align, (void)bytes;
	own_free(p);
}
