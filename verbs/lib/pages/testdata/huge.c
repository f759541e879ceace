/* Many blocks that are converted as a whole are huge pages, and may be had back in parts. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { BLOCKS = 20, EDGE = 20 }; /* pages beside the blocks, on each side */
static const size_t BLOCK = 512 * PAGE, SIZE = (BLOCKS * 512 + 2 * EDGE) * PAGE;

static unsigned char *memory(unsigned char **all)
{
	*all = anon(SIZE + 2 * BLOCK);
	uintptr_t block = ((uintptr_t)*all + BLOCK + EDGE * PAGE) & ~(BLOCK - 1);
	return (unsigned char *)block + (block - (uintptr_t)*all < EDGE * PAGE ? BLOCK : 0) - EDGE * PAGE;
}

/* How much of the range the process maps as huge pages of a file. */
static long huge_kib(const unsigned char *p)
{
	char line[256];
	unsigned long from, to;
	long kib = 0, sum = 0;
	bool inside = false;
	FILE *f = fopen("/proc/self/smaps", "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = from < (unsigned long)p + SIZE && to > (unsigned long)p;
		else if (inside && sscanf(line, "ShmemPmdMapped: %ld", &kib) == 1)
			sum += kib;
	if (f)
		fclose(f);
	return sum;
}

static bool kernel_has_them(void)
{
	unsigned char *p = anon(2 * BLOCK);
	unsigned char *at = (unsigned char *)(((uintptr_t)p + BLOCK - 1) & ~(BLOCK - 1));
	*at = 1;
	bool has = madvise(at, BLOCK, MADV_COLLAPSE) == 0;
	munmap(p, 2 * BLOCK);
	return has;
}

static void fill(unsigned char *p, size_t n, unsigned salt)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(i / 61 * 7 + salt);
}

static void check(const unsigned char *p, size_t n, unsigned salt, const char *what)
{
	for (size_t i = 0; i < n; i++)
		CHECK(p[i] == (unsigned char)(i / 61 * 7 + salt), "%s: byte %zu", what, i);
}

static void are_huge(void)
{
	unsigned char *all, *p = memory(&all);
	fill(p, SIZE, 1);
	struct urdma_region r = must_share(p, SIZE);
	CHECK(huge_kib(p) == BLOCKS * 2048, "%ld KiB are huge", huge_kib(p));
	CHECK(usage_now().file_kib == (long)SIZE / 1024, "%ld KiB in the file", usage_now().file_kib);
	unsigned char *view = daemon_view(&r);
	check(view, SIZE, 1, "the daemon's view");
	fill(view, SIZE, 2);
	check(p, SIZE, 2, "registered");
	drop_view(view, &r);
	must_deregister(&r);
	check(p, SIZE, 2, "deregistered");
	munmap(all, SIZE + 2 * BLOCK);
}

/* Another region holds a few pages of a block whose others are given back. */
static void held_in_part(void)
{
	unsigned char *all, *p = memory(&all);
	const size_t at = (EDGE + 700) * PAGE, n = 90 * PAGE;
	fill(p, SIZE, 3);
	struct urdma_region r = must_share(p, SIZE), part = must_share(p + at, n);
	must_deregister(&r);
	check(p, SIZE, 3, "deregistered but for a part");
	unsigned char *view = daemon_view(&part);
	fill(view, n, 4);
	check(p + at, n, 4, "the part");
	drop_view(view, &part);
	must_deregister(&part);
	check(p, at, 3, "before the part");
	check(p + at, n, 4, "the part, deregistered");
	munmap(all, SIZE + 2 * BLOCK);
	CHECK(idle_pages() == 0 && converted() == 0 && usage_now().file_kib == 0,
	      "%ld KiB left in the file", usage_now().file_kib);
}

static void dropped_in_part(void)
{
	unsigned char *all, *p = memory(&all);
	const size_t from = (EDGE + 100) * PAGE, to = (EDGE + 800) * PAGE;
	fill(p, SIZE, 5);
	struct urdma_region r = must_share(p, SIZE);
	CHECK(madvise(p + from, to - from, MADV_DONTNEED) == 0, "madvise");
	for (size_t i = from; i < to; i++)
		CHECK(p[i] == 0, "dropped, byte %zu", i);
	check(p, from, 5, "before what was dropped");
	must_deregister(&r);
	CHECK(p[from] == 0 && p[to - 1] == 0, "dropped and deregistered");
	check(p, from, 5, "before what was dropped");
	munmap(all, SIZE + 2 * BLOCK);
}

static void child_has_a_copy(void)
{
	unsigned char *all, *p = memory(&all);
	int status;
	fill(p, SIZE, 6);
	struct urdma_region r = must_share(p, SIZE);
	unsigned char *view = daemon_view(&r);
	pid_t pid = fork();
	if (pid == 0) {
		check(p, SIZE, 6, "in the child");
		fill(p, SIZE, 7);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "child %#x", status);
	check(p, SIZE, 6, "in the parent");
	fill(p, SIZE, 8);
	check(view, SIZE, 8, "the daemon's view");
	drop_view(view, &r);
	must_deregister(&r);
	check(p, SIZE, 8, "deregistered");
	munmap(all, SIZE + 2 * BLOCK);
}

static volatile bool stop;

/* Counts in a word of every 50th page; a count that is lost shows. */
static void *count_up(void *arg)
{
	unsigned char *p = arg;
	uint64_t n = 0;
	for (; !stop; n++)
		for (size_t i = 0; i < SIZE / PAGE; i += 50) {
			volatile uint64_t *word = (volatile uint64_t *)(void *)(p + i * PAGE + 8);
			CHECK(*word == n, "page %zu: %lu, expected %lu", i, (long)*word, (long)n);
			*word = n + 1;
		}
	return NULL;
}

static void beside_a_writer(void)
{
	unsigned char *all, *p = memory(&all);
	pthread_t t;
	CHECK(pthread_create(&t, NULL, count_up, p) == 0, "pthread_create");
	for (long i = 0; i < opt.rounds; i++) {
		struct urdma_region r = must_share(p, SIZE);
		CHECK(i || huge_kib(p) == BLOCKS * 2048, "%ld KiB are huge", huge_kib(p));
		must_deregister(&r);
	}
	stop = true;
	pthread_join(t, NULL);
	munmap(all, SIZE + 2 * BLOCK);
}

/* A process that is to have no huge pages gets none. */
static void unwanted(void)
{
	unsigned char *all, *p = memory(&all);
	CHECK(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0, "prctl");
	fill(p, SIZE, 9);
	struct urdma_region r = must_share(p, SIZE);
	CHECK(huge_kib(p) == 0, "%ld KiB are huge", huge_kib(p));
	check(p, SIZE, 9, "registered");
	must_deregister(&r);
	check(p, SIZE, 9, "deregistered");
	munmap(all, SIZE + 2 * BLOCK);
}

int test_huge(void)
{
	if (!kernel_has_them()) {
		printf("the kernel makes no huge pages on request (MADV_COLLAPSE, Linux 6.1)\n");
		return SKIP_STATUS;
	}
	are_huge();
	held_in_part();
	dropped_in_part();
	child_has_a_copy();
	beside_a_writer();
	unwanted();
	return 0;
}
