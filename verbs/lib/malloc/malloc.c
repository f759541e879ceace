/*
 * malloc.c - liburdma-malloc.so, which urdma exec preloads in addition to liburdma.so. It serves some
 * allocations from memory of liburdma.so that is shared with urdmad from the start (../pages/alloc.c), as
 * long as there is some: allocations aligned to a page or more, as I/O buffers are, and with
 * URDMA_SHARE_MALLOC also those of 128 KiB and more.
 *
 * All others go to the next allocator (RTLD_NEXT). If that is not the C library's, or another library's
 * function precedes ours, the program has its own allocator (or AddressSanitizer, or a tracer), which may
 * free memory by functions that we do not know; so nothing is shared then.
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

/* Functions of liburdma.so; NULL if it is not preloaded. */
WEAK int urdma_malloc_begin(const char *wish);
WEAK void *urdma_malloc(size_t bytes, size_t align, bool zeroed);
WEAK size_t urdma_malloc_size(const void *);
WEAK bool urdma_malloc_resize(void *, size_t);
WEAK void urdma_free(void *);

enum level { OFF, PAGES, LARGE };

static enum level level; /* which allocations are shared */
static bool any;         /* some allocation was shared, so a pointer may be one of them */

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

/* Memory for allocations during the search for the next functions. It is never freed. */
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

/* Returns false while the search is under way. The caller is then the searching thread itself: the process
 * has only one yet. */
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

/* Returns whether a function belongs to the C library. */
static bool is_libc(void *function)
{
	Dl_info of, libc;

	return function && dladdr(function, &of) && dladdr((void *)gnu_get_libc_version, &libc) &&
		of.dli_fbase == libc.dli_fbase;
}

/* Whether a call of the function by name reaches ours. */
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

/* With -z initfirst this runs before the constructors of all other libraries, including the C library,
 * which getenv needs. So liburdma.so's fork handlers are registered first. */
__attribute__((constructor)) static void begin(int argc, char **argv, char **env)
{
	(void)argc, (void)argv;
	if (ready() && urdma_malloc_begin && is_alone())
		level = (enum level)urdma_malloc_begin(value_of(env, "URDMA_SHARE_MALLOC"));
}

/* Returns NULL if the next allocator must serve the request. */
static void *share(size_t bytes, size_t align, bool zeroed)
{
	bool wanted = (align >= PAGE && level != OFF) || (bytes >= LEAST_LARGE && level == LARGE);
	void *p = wanted ? urdma_malloc(bytes ? bytes : 1, align, zeroed) : NULL;

	if (p)
		__atomic_store_n(&any, true, __ATOMIC_RELAXED);
	return p;
}

/* Returns the size of a shared allocation; 0 if the next allocator made it. */
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
		return fits ? take_early(bytes) : NULL; /* zeros, because it was never used */
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

/* Copies an allocation to new memory, when the allocator changes or it can't grow in place. */
static void *move(void *old, size_t had, size_t bytes)
{
	void *p = own_malloc(bytes);

	if (!p)
		return NULL;
	memcpy(p, old, had < bytes ? had : bytes);
	own_free(old);
	return p;
}

/* An allocation that becomes much smaller gives memory back. */
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

/* C23 functions. */
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
