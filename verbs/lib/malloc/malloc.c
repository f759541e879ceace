/*
 * malloc.c - liburdma-malloc.so, which urdma exec --share-malloc preloads beside liburdma.so:
 * the C library's allocator, but that large pieces are memory of liburdma.so's that is shared
 * from birth (../pages/alloc.c), as long as it has some.
 *
 * Where the program brings an allocator of its own, that one's functions come before these,
 * and nothing is shared, what it maps included: it keeps its own records there, and works on
 * them while the process forks.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WEAK __attribute__((weak))
#define ALIAS(name) __attribute__((alias(#name)))

/* glibc's own functions, by the names that it gives to those who take their place. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

/* liburdma.so's: not there where it is not preloaded, too. */
WEAK size_t urdma_malloc_least(void);
WEAK void *urdma_malloc(size_t, size_t);
WEAK size_t urdma_malloc_size(const void *);
WEAK bool urdma_malloc_resize(void *, size_t);
WEAK void urdma_free(void *);

static size_t least = SIZE_MAX; /* bytes that are shared */
static bool any;                /* have been: a pointer may be one of them */

static void *own_malloc(size_t bytes);
void *malloc(size_t) ALIAS(own_malloc);

__attribute__((constructor)) static void begin(void)
{
	if (urdma_malloc_least && dlsym(RTLD_DEFAULT, "malloc") == (void *)own_malloc)
		least = urdma_malloc_least();
}

/* NULL: the C library is to give it. */
static void *share(size_t bytes, size_t align)
{
	void *p = bytes >= least ? urdma_malloc(bytes, align) : NULL;

	if (p)
		__atomic_store_n(&any, true, __ATOMIC_RELAXED);
	return p;
}

/* Bytes of memory that is shared; 0: the C library gave it. */
static size_t shared_size(const void *p)
{
	return __atomic_load_n(&any, __ATOMIC_RELAXED) ? urdma_malloc_size(p) : 0;
}

static void *own_malloc(size_t bytes)
{
	void *p = share(bytes, 1);

	return p ? p : __libc_malloc(bytes);
}

void free(void *p)
{
	if (shared_size(p))
		urdma_free(p);
	else
		__libc_free(p);
}

void *calloc(size_t n, size_t size)
{
	size_t bytes;
	void *p = __builtin_mul_overflow(n, size, &bytes) ? NULL : share(bytes, 1);

	return p ? p : __libc_calloc(n, size);
}

size_t malloc_usable_size(void *p)
{
	static size_t (*next)(void *);
	size_t bytes = shared_size(p);

	if (bytes || !p)
		return bytes;
	if (!next)
		next = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
	return next(p);
}

/* To other memory: from one allocator to the other, or where there is no room behind it. */
static void *move(void *old, size_t had, size_t bytes)
{
	void *p = own_malloc(bytes);

	if (!p)
		return NULL;
	memcpy(p, old, had < bytes ? had : bytes);
	free(old);
	return p;
}

/* What became much smaller gives the rest back. */
void *realloc(void *old, size_t bytes)
{
	size_t had = shared_size(old);

	if (!old)
		return own_malloc(bytes);
	if (!had && bytes < least)
		return __libc_realloc(old, bytes);
	if (!bytes) {
		free(old);
		return NULL;
	}
	if (had && bytes >= had / 2 && urdma_malloc_resize(old, bytes))
		return old;
	return move(old, had ? had : malloc_usable_size(old), bytes);
}

static bool is_power_of_two(size_t n)
{
	return n && !(n & (n - 1));
}

void *memalign(size_t align, size_t bytes)
{
	void *p = is_power_of_two(align) ? share(bytes, align) : NULL;

	return p ? p : __libc_memalign(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes) ALIAS(memalign);

int posix_memalign(void **out, size_t align, size_t bytes)
{
	int before = errno;
	void *p;

	if (!is_power_of_two(align) || align % sizeof(void *))
		return EINVAL;
	p = memalign(align, bytes);
	errno = before;
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

void *valloc(size_t bytes)
{
	return memalign(4096, bytes);
}

void *pvalloc(size_t bytes)
{
	return memalign(4096, bytes + 4095 < bytes ? bytes : (bytes + 4095) & ~(size_t)4095);
}
