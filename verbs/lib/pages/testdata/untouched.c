/* Memory of which some pages were never touched, before there are threads and
 * while one of them touches the rest. */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "torture.h"

enum { PAGES = 1200 }; /* in three or four page tables */

static uint64_t *word(char *p, size_t page)
{
	return (uint64_t *)(void *)(p + page * PAGE + page % 500 * 8);
}

static void check_pages(char *p, const bool *touched, const char *what)
{
	static const char zero[PAGE];
	for (size_t i = 0; i < PAGES; i++) {
		char *page = p + i * PAGE;
		if (!touched[i]) {
			CHECK(memcmp(page, zero, PAGE) == 0,
			      "%s: untouched page %zu isn't zero", what, i);
			continue;
		}
		CHECK(*word(p, i) == i + 1, "%s: page %zu is lost", what, i);
	}
}

/* One page in every most pages, and some of them dropped again. */
static void touch_some(char *p, bool *touched, uint64_t *seed, uint64_t most)
{
	for (size_t i = 0; i < PAGES; i++) {
		touched[i] = most && below(seed, most) == 0;
		if (!touched[i])
			continue;
		*word(p, i) = i + 1;
		if (below(seed, 4) == 0) {
			madvise(p + i * PAGE, PAGE, MADV_DONTNEED);
			touched[i] = false;
		}
	}
}

/* PAGES of memory of which a few lie in a page table by themselves. */
static char *across(char **all)
{
	const uintptr_t table = 512 * PAGE, size = PAGES * PAGE;
	*all = anon(size + table);
	uintptr_t end = ((uintptr_t)*all + size + table - 2 * PAGE) & ~(table - 1);
	return (char *)(end + 2 * PAGE - size);
}

/* All of the file's pages are the program's: urdmad fills no hole. */
static void alone_round(uint64_t *seed, uint64_t most)
{
	bool touched[PAGES];
	char *all, *p = across(&all);
	touch_some(p, touched, seed, most);
	struct urdma_region r = must_share(p, PAGES * PAGE);
	CHECK(usage_now().file_kib == PAGES * PAGE / 1024, "%ld KiB in the file",
	      usage_now().file_kib);
	char *view = daemon_view(&r);
	check_pages(view, touched, "the daemon's view");
	check_pages(p, touched, "registered");
	for (size_t i = 0; i < PAGES; i += 7) {
		*word(view, i) = i + 1;
		touched[i] = true;
	}
	drop_view(view, &r);
	must_deregister(&r);
	check_pages(p, touched, "deregistered");
	munmap(all, (PAGES + 512) * PAGE);
}

static char *area;   /* what the thread touches, or NULL */
static size_t so_far; /* pages */
static bool ended;

static void *touch_all(void *arg)
{
	while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE)) {
		char *p = __atomic_load_n(&area, __ATOMIC_ACQUIRE);
		for (size_t i = 0; p && i < PAGES; i++) {
			/* From both ends, so that it meets every kind of run. */
			size_t at = i % 2 ? PAGES - 1 - i / 2 : i / 2;
			CHECK(*word(p, at) == 0, "page %zu isn't zero", at);
			*word(p, at) = at + 1;
			__atomic_store_n(&so_far, i + 1, __ATOMIC_RELEASE);
		}
		if (p)
			__atomic_store_n(&area, NULL, __ATOMIC_RELEASE);
		sched_yield();
	}
	return arg;
}

static void threaded_round(uint64_t *seed)
{
	bool touched[PAGES];
	char *p = anon((PAGES + 1) * PAGE);
	size_t start = below(seed, PAGES);
	memset(touched, true, sizeof touched);
	__atomic_store_n(&so_far, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&area, p, __ATOMIC_RELEASE);
	while (__atomic_load_n(&so_far, __ATOMIC_ACQUIRE) < start)
		sched_yield();
	struct urdma_region r = must_share(p, PAGES * PAGE);
	while (__atomic_load_n(&area, __ATOMIC_ACQUIRE))
		sched_yield();
	char *view = daemon_view(&r);
	check_pages(view, touched, "the daemon's view");
	drop_view(view, &r);
	check_pages(p, touched, "touched by another thread");
	must_deregister(&r);
	check_pages(p, touched, "deregistered");
	munmap(p, (PAGES + 1) * PAGE);
}

int test_untouched(void)
{
	pthread_t t;
	uint64_t seed = opt.seed;
	long rounds = opt.rounds ? opt.rounds : 60;
	for (long i = 0; i < rounds; i++)
		alone_round(&seed, (uint64_t)i % 10);
	pthread_create(&t, NULL, touch_all, NULL);
	for (long i = 0; i < rounds; i++)
		threaded_round(&seed);
	__atomic_store_n(&ended, true, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	CHECK(converted() == 0, "pages left");
	CHECK(usage_now().file_kib == 0, "%ld KiB left", usage_now().file_kib);
	return 0;
}
