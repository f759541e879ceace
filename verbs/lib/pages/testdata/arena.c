/* Memory of the arena: contents, limits, mappings, and the effect of the program's calls on them. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "torture.h"

enum { PAGES = 1200, LIVE = 40, BOUND = 24 << 20 };
static const size_t SIZE = (size_t)PAGES * PAGE;

/* Registers the bytes, and writes to them as the daemon. */
static void register_and_write(void *p, size_t n, unsigned salt)
{
	struct urdma_region r = must_share(p, n);
	unsigned char *view = daemon_view(&r);
	fill(view, n, salt);
	check(p, n, salt, "registered");
	drop_view(view, &r);
}

/* Freed while it is registered: the next owner of the address finds zeros. */
static void freed_early(void)
{
	unsigned char *p = urdma_alloc(SIZE), *q;
	fill(p, SIZE, 4);
	must_share(p, SIZE);
	urdma_free(p);
	q = urdma_alloc(SIZE);
	CHECK(q == p, "another address");
	check_zero(q, SIZE, "fresh");
	register_and_write(q, SIZE, 6);
	urdma_free(q);
}

/* The program's changes to the mapping of a large allocation are undone when it is freed. */
static void as_new(void)
{
	unsigned char *p = urdma_alloc(SIZE);
	CHECK(mprotect(p + PAGE, PAGE, PROT_NONE) == 0 && mlock(p + 3 * PAGE, PAGE) == 0, "mprotect, mlock");
	CHECK(mappings_of_memfd() > 1, "one mapping");
	urdma_free(p);
	CHECK(mappings_of_memfd() == 1, "%ld mappings", mappings_of_memfd());
	CHECK(urdma_alloc(SIZE) == p, "another address");
	fill(p, SIZE, 1);
	urdma_free(p);
}

int test_allocated(void)
{
	unsigned char *p = urdma_alloc(SIZE - 100), *q;
	CHECK(p && (uintptr_t)p % PAGE == 0, "urdma_alloc");
	check_zero(p, SIZE, "fresh");
	CHECK(file_kib() == (long)SIZE / 1024, "%ld KiB exist", file_kib());
	fill(p, SIZE, 1);
	register_and_write(p, SIZE, 2);
	register_and_write(p + 5, SIZE - 9, 3);
	CHECK(mappings_of_memfd() == 1, "%ld mappings", mappings_of_memfd());
	urdma_free(p);
	urdma_free(p);
	urdma_free(NULL);
	urdma_free(&opt);
	CHECK(file_kib() == 0, "%ld KiB left", file_kib());
	CHECK(!urdma_alloc(SIZE_MAX) && errno == ENOMEM, "more than there is");
	freed_early();
	as_new();
	q = urdma_alloc(40 * MIB);
	CHECK(q && (uintptr_t)q % (2 * MIB) == 0, "a large one");
	register_and_write(q, 40 * MIB, 1);
	urdma_free(q);
	CHECK(file_kib() == 0, "%ld KiB left", file_kib());
	return 0;
}

struct piece {
	unsigned char *p;
	size_t n;
	unsigned salt;
};

static void make(struct piece *x, uint64_t *seed, size_t *sum)
{
	size_t align = (size_t)1 << below(seed, 22), held;
	bool zeroed = below(seed, 2);
	x->n = 1 + below(seed, below(seed, 3) ? 2 * MIB : 9 * PAGE);
	x->salt = (unsigned)below(seed, 256);
	x->p = urdma_malloc(x->n, align, zeroed);
	if (!x->p) {
		CHECK(*sum + x->n > BOUND / 4, "none of %zu bytes beside %zu", x->n, *sum);
		return;
	}
	held = urdma_malloc_size(x->p);
	CHECK((uintptr_t)x->p % align == 0 && held >= x->n && held < x->n + PAGE, "%p, %zu of %zu", x->p, held, x->n);
	if (zeroed)
		check_zero(x->p, held, "fresh");
	fill(x->p, x->n, x->salt);
	*sum += held;
	CHECK(*sum <= BOUND, "%zu bytes of %d", *sum, BOUND);
}

static void grow(struct piece *x, uint64_t *seed, size_t *sum)
{
	size_t more = below(seed, 3 * MIB), before = urdma_malloc_size(x->p);
	if (!urdma_malloc_resize(x->p, x->n + more))
		return;
	*sum += urdma_malloc_size(x->p) - before;
	check(x->p, x->n, x->salt, "grown");
	check_zero(x->p + before, urdma_malloc_size(x->p) - before, "what it grew by");
	x->n = x->n + more;
	fill(x->p, x->n, x->salt);
}

static void drop(struct piece *x, size_t *sum)
{
	check(x->p, x->n, x->salt, "to be freed");
	*sum -= urdma_malloc_size(x->p);
	urdma_free(x->p);
	CHECK(urdma_malloc_size(x->p) == 0, "freed");
	x->p = NULL;
}

/* Compares the arena with a model, at its limit most of the time; at the end there is one free extent. */
int test_model(void)
{
	struct piece live[LIVE] = { { 0 } };
	uint64_t seed = opt.seed;
	size_t sum = 0;
	CHECK(urdma_malloc_begin("24M") == 2, "begin");
	for (int round = 0; round < 1000; round++) {
		struct piece *x = &live[below(&seed, LIVE)];
		if (!x->p)
			make(x, &seed, &sum);
		else if (below(&seed, 2))
			grow(x, &seed, &sum);
		else
			drop(x, &sum);
	}
	for (int i = 0; i < LIVE; i++)
		if (live[i].p)
			drop(&live[i], &sum);
	CHECK(sum == 0, "%zu bytes", sum);
	unsigned char *p = urdma_malloc(BOUND, 1, true);
	CHECK(p && !urdma_malloc(1, 1, false) && !urdma_malloc_resize(p, BOUND + 1), "all of it");
	urdma_free(p);
	CHECK(file_kib() == 0, "%ld KiB left", file_kib());
	CHECK(!urdma_malloc(SIZE_MAX, 1, false) && !urdma_malloc(PAGE, (size_t)1 << 63, false), "more than there is");
	CHECK(!urdma_alloc(BOUND + 1) && errno == ENOMEM, "more than there is");
	return 0;
}

/* Many allocations of a page are one mapping, even when every second is freed, and one of those was mapped
 * over by the program. */
int test_pieces(void)
{
	enum { N = 100000 };
	static unsigned char *p[N];
	for (int i = 0; i < N; i++) {
		CHECK((p[i] = urdma_malloc(PAGE, PAGE, false)), "piece %d", i);
		p[i][0] = (unsigned char)i;
	}
	CHECK(mappings_of_memfd() == 1, "%ld mappings", mappings_of_memfd());
	CHECK(mmap(p[N / 2], PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p[N / 2],
		"mmap");
	fill(p[N / 2], PAGE, 7);
	for (int i = 0; i < N; i += 2)
		urdma_free(p[i]);
	CHECK(mappings_of_memfd() == 1, "%ld mappings", mappings_of_memfd());
	CHECK(file_kib() <= N / 2 * 4 + 4096, "%ld KiB left", file_kib());
	for (int i = 0; i < N; i += 2) {
		CHECK((p[i] = urdma_malloc(PAGE, PAGE, true)), "piece %d", i);
		check_zero(p[i], PAGE, "used again");
		p[i][0] = (unsigned char)i;
	}
	for (int i = 0; i < N; i++)
		CHECK(p[i][0] == (unsigned char)i, "piece %d", i);
	for (int i = 0; i < N; i++)
		urdma_free(p[i]);
	CHECK(file_kib() <= 4096, "%ld KiB left", file_kib());
	return 0;
}

static void *work(void *arg)
{
	struct piece live[8] = { { 0 } };
	uint64_t seed = opt.seed + (uintptr_t)arg;
	for (int round = 0; round < 600; round++) {
		struct piece *x = &live[below(&seed, 8)];
		if (x->p) {
			check(x->p, x->n, x->salt, "of a thread");
			urdma_free(x->p);
		}
		x->n = 1 + below(&seed, 50 * PAGE);
		x->salt = (unsigned)below(&seed, 256);
		CHECK((x->p = urdma_malloc(x->n, PAGE, true)), "urdma_malloc");
		check_zero(x->p, x->n, "of a thread");
		must_share(x->p, x->n);
		fill(x->p, x->n, x->salt);
	}
	for (int i = 0; i < 8; i++)
		urdma_free(live[i].p);
	return NULL;
}

int test_threads(void)
{
	pthread_t t[4];
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, work, (void *)(i + 1));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}

/* Discarded memory reads as zeros, as private memory would. */
static void drops(int advice, const char *what)
{
	unsigned char *p = urdma_alloc(8 * PAGE);
	fill(p, 8 * PAGE, 3);
	if (madvise(p + 2 * PAGE, 3 * PAGE - 5, advice)) {
		printf("%s: %s\n", what, strerror(errno));
		return;
	}
	check_zero(p + 2 * PAGE, 3 * PAGE, what);
	check(p, 2 * PAGE, 3, what);
	CHECK(p[5 * PAGE] == (unsigned char)(5 * PAGE / 61 * 7 + 3), "behind it");
	urdma_free(p);
}

int test_advice(void)
{
	unsigned char *p = anon(2 * PAGE), *q = urdma_alloc(2 * PAGE);
	drops(MADV_DONTNEED, "MADV_DONTNEED");
	drops(MADV_FREE, "MADV_FREE");
	drops(24, "MADV_DONTNEED_LOCKED");
	drops(MADV_REMOVE, "MADV_REMOVE");
	memset(p, 1, 2 * PAGE);
	CHECK(madvise(p, PAGE, MADV_DONTNEED) == 0 && !p[0] && p[PAGE] == 1, "private memory");
	CHECK(madvise(p + 1, PAGE, MADV_DONTNEED) == -1 && errno == EINVAL, "an odd address");
	CHECK(madvise(p, PAGE, 12345) == -1 && errno == EINVAL, "no such advice");
	CHECK(madvise(q, PAGE, 12345) == -1 && errno == EINVAL, "no such advice");
	CHECK(madvise(q, PAGE, MADV_DONTFORK) == 0 && madvise(q, PAGE, MADV_DOFORK) == 0, "forks");
	CHECK(mappings_of_memfd() == 1, "%ld mappings", mappings_of_memfd());
	return 0;
}
