/* Allocators and registrations: overlap, realloc, calloc, reuse, brk. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "torture.h"

enum { OVER_PAGES = 40, LIVE = 12 };

static void check_model(const unsigned char *p, const unsigned char *model)
{
	CHECK(memcmp(p, model, OVER_PAGES * PAGE) == 0, "content differs");
}

/* What the daemon sees through a region is what the program sees. */
static void check_view(const struct urdma_region *r, const void *p)
{
	void *view = daemon_view(r);
	CHECK(memcmp(view, p, r->length) == 0, "daemon's view differs");
	drop_view(view, r);
}

int test_overlap(void)
{
	uint64_t seed = opt.seed;
	unsigned char *p = anon(OVER_PAGES * PAGE), *model = anon(OVER_PAGES * PAGE);
	struct urdma_region live[LIVE] = { { 0 } };
	long rounds = opt.rounds ? opt.rounds : 3000;
	for (long i = 0; i < rounds; i++) {
		unsigned k = (unsigned)below(&seed, LIVE);
		uint64_t a = below(&seed, OVER_PAGES * PAGE);
		uint64_t n = 1 + below(&seed, OVER_PAGES * PAGE - a);
		if (live[k].length)
			must_deregister(&live[k]);
		live[k] = must_share(p + a, n);
		check_view(&live[k], p + a);
		memset(p + a, (int)i, n / 2);
		memset(model + a, (int)i, n / 2);
		check_model(p, model);
	}
	for (unsigned k = 0; k < LIVE; k++)
		if (live[k].length)
			must_deregister(&live[k]);
	check_model(p, model);
	CHECK(converted() == 0, "%lu pages left", (long)converted());
	CHECK(urdma_pages_deregister(&live[0]) == EINVAL, "twice");
	return 0;
}

static void fill(unsigned char *p, size_t n, unsigned mark)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(mark + i * 7);
}

static void check_fill(const unsigned char *p, size_t n, unsigned mark,
                       const char *what)
{
	for (size_t i = 0; i < n; i++)
		CHECK(p[i] == (unsigned char)(mark + i * 7), "%s, byte %zu",
		      what, i);
}

/* Three neighbours, all registered whole; the middle one is reallocated. */
static void realloc_round(uint64_t *seed)
{
	size_t n = (1 + below(seed, 64)) * 16 * 1024 + below(seed, 5000);
	size_t to = 1 + below(seed, 3 * n);
	unsigned char *p[3];
	struct urdma_region r[3];
	for (unsigned i = 0; i < 3; i++) {
		p[i] = malloc(n);
		fill(p[i], n, i);
		/* Chunk headers and tails too, as neighbours in a page do. */
		r[i] = must_share(p[i], n);
	}
	p[1] = realloc(p[1], to);
	check_fill(p[1], n < to ? n : to, 1, "reallocated");
	memset(p[1], 0xEE, to);
	check_fill(p[0], n, 0, "neighbour below");
	check_fill(p[2], n, 2, "neighbour above");
	for (unsigned i = 0; i < 3; i++)
		must_deregister(&r[i]);
	for (size_t i = 0; i < to; i++)
		CHECK(p[1][i] == 0xEE, "reallocated, byte %zu, deregistered", i);
	check_fill(p[0], n, 0, "neighbour below, deregistered");
	check_fill(p[2], n, 2, "neighbour above, deregistered");
	for (unsigned i = 0; i < 3; i++)
		free(p[i]);
}

int test_realloc(void)
{
	uint64_t seed = opt.seed;
	long rounds = opt.rounds ? opt.rounds : 300;
	for (long i = 0; i < rounds; i++)
		realloc_round(&seed);
	CHECK(converted() == 0, "%lu pages left", (long)converted());
	CHECK(only_idle(), "%ld KiB in the files", usage_now().file_kib);
	return 0;
}

struct buffer {
	unsigned char *p;
	size_t n;
	struct urdma_region r;
};

static void check_zero(const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK(p[i] == 0, "calloc of %zu returned byte %zu = %#x", n, i,
		      p[i]);
}

/* Frees before it deregisters in half the cases, as caches of registrations
 * do: the allocator then purges and reuses pages that are still shared. */
static void end_buffer(struct buffer *b, uint64_t *seed)
{
	if (!b->p)
		return;
	bool early = below(seed, 2);
	if (early)
		free(b->p);
	must_deregister(&b->r);
	if (!early)
		free(b->p);
	b->p = NULL;
}

static void *calloc_rounds(void *arg)
{
	enum { N = 24 };
	struct buffer b[N] = { { 0 } };
	uint64_t seed = opt.seed + (uintptr_t)arg;
	long rounds = opt.rounds ? opt.rounds : 2500;
	for (long i = 0; i < rounds; i++) {
		struct buffer *x = &b[below(&seed, N)];
		end_buffer(x, &seed);
		x->n = 1 + below(&seed, below(&seed, 4) ? 9000 : 700000);
		x->p = calloc(1, x->n);
		check_zero(x->p, x->n);
		memset(x->p, 0xDD, x->n);
		x->r = must_register(x->p, x->n);
		for (size_t j = 0; j < x->n; j += 97)
			CHECK(x->p[j] == 0xDD, "byte %zu lost", j);
	}
	for (unsigned i = 0; i < N; i++)
		end_buffer(&b[i], &seed);
	return NULL;
}

int test_calloc(void)
{
	pthread_t t[2];
	calloc_rounds(NULL);
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&t[i], NULL, calloc_rounds, (void *)(i + 1));
	for (unsigned i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	CHECK(converted() == 0, "%lu pages left", (long)converted());
	return 0;
}

/* Memory unmapped behind our back (glibc's free), its address used again and
 * registered again while the former registration lives. */
int test_reuse(void)
{
	struct urdma_region r[4];
	const size_t n = 64 * PAGE;
	unsigned char *p = anon(n);
	for (unsigned i = 0; i < 3; i++) {
		fill(p, n, i);
		r[i] = must_share(p, n);
		CHECK(r[i].file_id == (int)i, "file %d", r[i].file_id);
		void *q = (void *)mmap(p, n, PROT_READ | PROT_WRITE,
		                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		                       -1, 0);
		CHECK(q == p, "mmap over it");
		check_zero(p, n);
	}
	fill(p, n, 9);
	r[3] = must_share(p, n);
	memset(daemon_view(&r[0]), 0x77, n);
	check_fill(p, n, 9, "written by a former registration");
	for (unsigned i = 0; i < 4; i++)
		must_deregister(&r[i]);
	check_fill(p, n, 9, "deregistered");
	munmap(p, n); /* nor is it left where it stays when it is deregistered */
	CHECK(only_idle(), "%ld KiB in the files", usage_now().file_kib);
	CHECK(converted() == 0, "%lu pages left", (long)converted());
	return 0;
}

/* The heap's top is given back by brk, which no interposition sees. */
static void brk_round(unsigned pages)
{
	unsigned char *top = sbrk(0);
	size_t pad = (size_t)(-(uintptr_t)top & (PAGE - 1));
	size_t n = (size_t)pages * PAGE;
	CHECK(sbrk((intptr_t)(pad + n)) == top, "sbrk");
	unsigned char *p = top + pad;
	fill(p, n, pages);
	struct urdma_region r = must_share(p + PAGE, n - PAGE);
	CHECK(sbrk(-(intptr_t)(n / PAGE / 2 * PAGE)) != (void *)-1, "shrink");
	CHECK(sbrk((intptr_t)(n / PAGE / 2 * PAGE)) != (void *)-1, "grow");
	size_t kept = n - n / PAGE / 2 * PAGE;
	check_fill(p, kept, pages, "below the old top");
	check_zero(p + kept, n - kept);
	must_deregister(&r);
	check_fill(p, kept, pages, "below the old top, deregistered");
	check_zero(p + kept, n - kept);
	CHECK(sbrk(-(intptr_t)(pad + n)) != (void *)-1, "shrink to the start");
}

int test_brk(void)
{
	for (unsigned i = 2; i < 200; i++)
		brk_round(i);
	CHECK(converted() == 0, "%lu pages left", (long)converted());
	CHECK(only_idle(), "%ld KiB in the files", usage_now().file_kib);
	return 0;
}
