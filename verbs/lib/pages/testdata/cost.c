/* What registrations cost, in system calls and in page table entries, and that
 * ranges which are registered several times are counted right. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "../internal.h"
#include "../kernel/sys.h"
#undef PAGE
#include "torture.h"

uint64_t converted(void)
{
	return urdma_pages_state.present - urdma_pages_state.idle;
}

uint64_t idle_pages(void)
{
	return urdma_pages_state.idle;
}

void keep_least(uint64_t bytes)
{
	urdma_pages_state.keep_least = urdma_pages_state.seen_least = bytes;
	urdma_pages_state.forks = false;
}

void keep_forget(void)
{
	struct held held;
	pages_lock_all(&held);
	pages_gone(0, URDMA_PAGES_FILE_SIZE);
	keep_reset();
	pages_unlock_all(&held);
}

uint64_t kept_pages(void)
{
	return urdma_pages_state.kept;
}

/* The same pages again, whichever bytes of them: nothing that goes with their
 * number. */
static void again(void)
{
	const size_t n = 32 << 20;
	unsigned char *p = anon(n);
	memset(p, 1, n);
	struct urdma_region r = must_share(p, n);
	uint64_t before = urdma_pages_state.changes;
	for (int i = 0; i < 100; i++) {
		struct urdma_region s = must_share(p, n);
		struct urdma_region t = must_share(p + 1, n - 2);
		must_deregister(&s);
		must_deregister(&t);
	}
	CHECK(urdma_pages_state.changes - before <= 2, "%lu entries changed",
	      (long)(urdma_pages_state.changes - before));
	must_deregister(&r);
	CHECK(converted() == 0, "pages left");
	CHECK(urdma_pages_deregister(&r) == EINVAL, "deregistered twice");
	munmap(p, n);
}

enum { PAGES = 24, LIVE = 64 };

static void check_counts(const int *count)
{
	uint64_t want = 0;
	for (int i = 0; i < PAGES; i++)
		want += count[i] > 0;
	CHECK(converted() == want, "%lu pages are shared, expected %lu",
	      (long)converted(), (long)want);
}

/* Ranges that overlap, lie in each other and are the same, against a count for
 * each page. */
static void model(void)
{
	struct urdma_region live[LIVE];
	int count[PAGES] = { 0 }, n = 0;
	unsigned char *p = anon(PAGES * PAGE);
	uint64_t seed = opt.seed;
	for (size_t i = 0; i < PAGES * PAGE; i++)
		p[i] = (unsigned char)(i * 7);
	for (int k = 0; k < 3000; k++) {
		int by = n == 0 || (n < LIVE && below(&seed, 2)) ? 1 : -1;
		uint64_t at = below(&seed, 4) * 5 * PAGE + below(&seed, 3);
		size_t len = 1 + below(&seed, 3) * 4 * PAGE;
		size_t out = by < 0 ? below(&seed, (uint64_t)n) : 0;
		if (by > 0)
			live[n++] = must_share(p + at, len);
		struct urdma_region r = by > 0 ? live[n - 1] : live[out];
		if (by < 0) {
			must_deregister(&r);
			live[out] = live[--n];
		}
		uint64_t first = (r.addr - (uint64_t)p) / PAGE;
		uint64_t last = (r.addr + r.length - 1 - (uint64_t)p) / PAGE;
		for (uint64_t i = first; i <= last; i++)
			count[i] += by;
		check_counts(count);
	}
	while (n)
		must_deregister(&live[--n]);
	for (size_t i = 0; i < PAGES * PAGE; i++)
		CHECK(p[i] == (unsigned char)(i * 7), "byte %zu", i);
	munmap(p, PAGES * PAGE);
}

#ifdef URDMA_PAGES_COUNT_CALLS
uint64_t urdma_pages_calls;

#define CALLS(most, what)                                                     \
	do {                                                                  \
		uint64_t from_ = urdma_pages_calls;                           \
		what;                                                         \
		uint64_t n_ = urdma_pages_calls - from_;                      \
		printf("%2lu calls: %s\n", (long)n_, #what);                  \
		CHECK(n_ <= most, "at most %d expected", most);               \
	} while (0)

/* Older kernels tell the mappings as text, in as many reads as there is of it. */
static bool asks_for_one(void)
{
	struct maps m;
	struct vma v;
	CHECK(maps_open(&m) == 0 && maps_find(&m, (uint64_t)&m, &v) == 0, "maps");
	bool one = !m.text;
	maps_close(&m);
	return one;
}

/* With one thread, and what is kept open open. */
static void calls(void)
{
	if (!asks_for_one()) {
		printf("no PROCMAP_QUERY: calls are not counted\n");
		return;
	}
	const size_t n = 32 << 20;
	unsigned char *p = anon(n + 8 * PAGE);
	memset(p, 1, n + 8 * PAGE);
	struct urdma_region r = must_share(p, PAGE), s, all;
	must_deregister(&r);
	CALLS(24, r = must_share(p + 2 * PAGE, PAGE));
	CALLS(6, s = must_share(p + 2 * PAGE, PAGE));
	CALLS(2, must_deregister(&s));
	CALLS(16, must_deregister(&r));
	CALLS(20 + 17 * 9 + 2 * 20, all = must_share(p + 4 * PAGE, n));
	CALLS(8, s = must_share(p + 4 * PAGE, n));
	CALLS(2, must_deregister(&s));
	CALLS(12 + 17 * 7, must_deregister(&all));
	munmap(p, n + 8 * PAGE);
}
#else
static void calls(void)
{
}
#endif

int test_cost(void)
{
	again();
	model();
	calls();
	return 0;
}
