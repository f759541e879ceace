/* Large memory that stays shared after its last registration (keep.c). */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "torture.h"

enum { PAGES = 1200 }; /* in three or four page tables */
static const size_t SIZE = (size_t)PAGES * PAGE;

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

/* Registered and deregistered again. */
static unsigned char *idle_memory(unsigned salt)
{
	unsigned char *p = anon(SIZE);
	fill(p, SIZE, salt);
	struct urdma_region r = must_share(p, SIZE);
	must_deregister(&r);
	CHECK(idle_pages() == PAGES, "%ld pages are kept", (long)idle_pages());
	CHECK(converted() == 0 && kept_pages() == 0, "as something else");
	check(p, SIZE, salt, "deregistered");
	return p;
}

static void nothing_left(void)
{
	CHECK(idle_pages() == 0, "%ld pages are kept", (long)idle_pages());
	CHECK(usage_now().file_kib == 0, "%ld KiB left", usage_now().file_kib);
}

/* What covers a page in part doesn't keep it. */
static void registered_again(void)
{
	unsigned char *p = idle_memory(1);
	fill(p, SIZE, 2);
	struct urdma_region r = must_share(p + 5, SIZE - 9);
	CHECK(idle_pages() == 0 && converted() == PAGES, "registered");
	unsigned char *view = daemon_view(&r);
	check(view - 5, SIZE - 4, 2, "the daemon's view");
	fill(view - 5, SIZE - 4, 3);
	drop_view(view, &r);
	must_deregister(&r);
	CHECK(idle_pages() == PAGES - 2 && converted() == 0, "%ld pages are kept",
	      (long)idle_pages());
	check(p, SIZE - 4, 3, "deregistered again");
	munmap(p, SIZE);
	nothing_left();
}

static void dropped(void)
{
	unsigned char *p = idle_memory(1);
	long all = usage_now().file_kib;
	CHECK(madvise(p + 100 * PAGE, 700 * PAGE, MADV_DONTNEED) == 0, "madvise");
	for (size_t i = 0; i < 700 * PAGE; i++)
		CHECK(p[100 * PAGE + i] == 0, "MADV_DONTNEED, byte %zu", i);
	CHECK(madvise(p + 100 * PAGE, 700 * PAGE, MADV_DONTNEED) == 0, "madvise");
	CHECK(usage_now().file_kib == all - 700 * PAGE / 1024, "%ld KiB in the file",
	      usage_now().file_kib);
	struct urdma_region r = must_share(p, SIZE);
	CHECK(usage_now().file_kib == all,
	      "%ld KiB in the file of what is registered", usage_now().file_kib);
	must_deregister(&r);
	CHECK(munmap(p + 200 * PAGE, 100 * PAGE) == 0, "munmap");
	CHECK(idle_pages() == PAGES - 100, "%ld pages are kept", (long)idle_pages());
	CHECK(mmap(p, 100 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
	           -1, 0) == p, "mmap");
	CHECK(idle_pages() == PAGES - 200 && p[0] == 0, "mapped over");
	munmap(p, SIZE);
	nothing_left();
}

static void moved(void)
{
	unsigned char *p = idle_memory(4);
	unsigned char *q = mremap(p, SIZE, 3 * SIZE, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED, "mremap");
	nothing_left();
	check(q, SIZE, 4, "moved");
	for (size_t i = SIZE; i < 3 * SIZE; i += PAGE)
		CHECK(q[i] == 0, "grown, byte %zu", i);
	struct urdma_region r = must_share(q + SIZE, 2 * SIZE);
	must_deregister(&r);
	CHECK(idle_pages() == 2 * PAGES, "what was moved is not known");
	munmap(q, 3 * SIZE);
	nothing_left();
}

static void child_has_its_own(unsigned char *p)
{
	int to_child[2], status;
	char byte = 0;
	CHECK(pipe(to_child) == 0, "pipe");
	check(p, SIZE, 5, "before the fork");
	pid_t pid = fork();
	if (pid == 0) {
		alarm(120);
		CHECK(read(to_child[0], &byte, 1) == 1, "pipe");
		check(p, SIZE, 5, "in the child");
		fill(p, SIZE, 6);
		_exit(0);
	}
	fill(p, SIZE / 2, 7);
	CHECK(write(to_child[1], "", 1) == 1, "pipe");
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "child");
	check(p, SIZE / 2, 7, "in the parent");
	fill(p, SIZE / 2, 5);
	check(p, SIZE, 5, "in the parent");
	close(to_child[0]);
	close(to_child[1]);
}

/* With one thread they become ordinary memory before the kernel forks. */
static void forked(void)
{
	unsigned char *p = idle_memory(5);
	child_has_its_own(p);
	nothing_left();
	munmap(p, SIZE);
}

/* A coroutine's stack: no child of it can have that, and its parent keeps it. */
static ucontext_t coroutine, back;
static volatile unsigned steps;

static void fork_on_it(void)
{
	volatile unsigned char local[3 * PAGE];
	int status;
	for (size_t i = 0; i < sizeof local; i++)
		local[i] = (unsigned char)(i * 3);
	pid_t pid = fork();
	for (size_t i = 0; i < sizeof local; i++)
		CHECK(local[i] == (unsigned char)(i * 3), "stack, byte %zu", i);
	steps++;
	if (pid == 0)
		_exit(0);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == SIGSEGV,
	      "child %#x", status);
}

static void forked_on_a_stack(bool registered)
{
	keep_least(1 << 20);
	unsigned char *p = idle_memory(5);
	struct urdma_region r;
	if (registered)
		r = must_share(p, SIZE);
	steps = 0;
	CHECK(getcontext(&coroutine) == 0, "getcontext");
	coroutine.uc_stack.ss_sp = p + 300 * PAGE;
	coroutine.uc_stack.ss_size = 300 * PAGE;
	coroutine.uc_link = &back;
	makecontext(&coroutine, fork_on_it, 0);
	CHECK(swapcontext(&back, &coroutine) == 0 && steps == 1, "%u steps", steps);
	check(p, 300 * PAGE, 5, "beside the stack");
	if (registered)
		must_deregister(&r);
	munmap(p, SIZE);
	nothing_left();
}

static void limited(void)
{
	const struct rlimit some = { (rlim_t)1 << 40, RLIM_INFINITY };
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	unsigned char *p = anon(SIZE);
	CHECK(setrlimit(RLIMIT_AS, &some) == 0, "setrlimit");
	struct urdma_region r = must_share(p, SIZE);
	must_deregister(&r);
	CHECK(setrlimit(RLIMIT_AS, &none) == 0, "setrlimit");
	nothing_left();
	munmap(p, SIZE);
}

/* The whole pages of what malloc gives: it lies behind a head. */
static unsigned char *idle_chunk(size_t n, uint64_t kept)
{
	unsigned char *p = malloc(n);
	CHECK(p, "malloc");
	fill(p, n, 6);
	struct urdma_region r = must_share(p, n);
	must_deregister(&r);
	CHECK(idle_pages() == kept, "%ld pages are kept, not %ld", (long)idle_pages(), (long)kept);
	check(p, n, 6, "the allocator's");
	return p;
}

/* free(3) unmaps what nobody sees unmapped: of that 64 MiB stay, and what is gone
 * makes room. */
static void of_the_allocator(void)
{
	const char *another = getenv("LD_PRELOAD");
	const size_t n = 12 << 20;
	const uint64_t whole = n / PAGE - 1;
	unsigned char *p[6];
	if (another && *another)
		return; /* jemalloc's calls of munmap are seen */
	mallopt(M_MMAP_THRESHOLD, 1 << 20); /* whatever was freed */
	for (unsigned i = 0; i < 5; i++) {
		p[i] = idle_chunk(n, (i + 1) * whole);
		CHECK((uintptr_t)p[i] % PAGE == 16, "malloc: not by mmap");
	}
	p[5] = idle_chunk(n, 5 * whole); /* there is no room */
	free(p[0]);
	free(p[1]);
	free(p[5]);
	CHECK(idle_pages() == 5 * whole, "it was seen");
	p[5] = realloc(p[4], 2 * n);
	CHECK(p[5] && idle_pages() == 5 * whole, "realloc");
	check(p[5], n, 6, "realloc");
	for (size_t i = n; i < 2 * n; i++)
		CHECK(p[5][i] == 0, "grown, byte %zu", i);
	p[4] = anon(2 * n + PAGE); /* in their place */
	for (size_t i = 0; i < 2 * n; i += PAGE)
		CHECK(p[4][i] == 0, "mapped in their place, byte %zu", i);
	p[0] = idle_chunk(n, 3 * whole);
	check(p[2], n, 6, "another's");
	for (unsigned i = 0; i < 4; i++)
		if (i != 1)
			free(p[i]);
	free(p[5]);
	munmap(p[4], 2 * n + PAGE);
	keep_forget();
	nothing_left();
}

static void *wait_for_end(void *arg)
{
	pause();
	return arg;
}

/* With more threads the child copies them; so that this is done once only, what
 * is deregistered after that is given back. */
static void forked_beside_others(void)
{
	pthread_t t;
	unsigned char *p;
	pthread_create(&t, NULL, wait_for_end, NULL);
	forked_on_a_stack(false);
	forked_on_a_stack(true);
	keep_least(1 << 20);
	p = idle_memory(5);
	child_has_its_own(p);
	child_has_its_own(p);
	CHECK(idle_pages() == PAGES, "%ld pages are kept", (long)idle_pages());
	struct urdma_region r = must_share(p, SIZE);
	must_deregister(&r);
	CHECK(idle_pages() == 0, "a program that forks keeps them");
	check(p, SIZE, 5, "given back");
	munmap(p, SIZE);
	nothing_left();
}

int test_kept(void)
{
	keep_least(1 << 20);
	registered_again();
	dropped();
	moved();
	forked();
	forked_on_a_stack(false);
	forked_on_a_stack(true);
	keep_least(1 << 20);
	limited();
	of_the_allocator();
	forked_beside_others();
	return 0;
}
