/* Memory that is shared from birth (alloc.c), and its addresses (arena.c). */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

void *urdma_alloc(size_t bytes);
void urdma_free(void *p);
size_t urdma_malloc_least(void);
void *urdma_malloc(size_t bytes, size_t align);
size_t urdma_malloc_size(const void *p);
bool urdma_malloc_resize(void *p, size_t bytes);

enum { PAGES = 1200, MIB = 1 << 20 };
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

static void check_zero(const unsigned char *p, size_t n, const char *what)
{
	for (size_t i = 0; i < n; i++)
		CHECK(p[i] == 0, "%s: byte %zu", what, i);
}

static void nothing_left(void)
{
	CHECK(idle_pages() == 0 && converted() == 0, "%ld and %ld pages", (long)idle_pages(), (long)converted());
	CHECK(usage_now().file_kib == 0, "%ld KiB left", usage_now().file_kib);
}

/* Registers the bytes, writes to them as the daemon and takes the registration back. */
static void register_and_write(unsigned char *p, size_t n, unsigned salt)
{
	struct urdma_region r = must_share(p, n);
	unsigned char *view = daemon_view(&r);
	fill(view, n, salt);
	check(p, n, salt, "registered");
	drop_view(view, &r);
	must_deregister(&r);
	check(p, n, salt, "deregistered");
}

static void allocated(void)
{
	unsigned char *p = urdma_alloc(SIZE - 100);
	CHECK(p && (uintptr_t)p % PAGE == 0, "urdma_alloc");
	check_zero(p, SIZE, "fresh");
	CHECK(usage_now().file_kib == (long)SIZE / 1024, "%ld KiB exist", usage_now().file_kib);
	fill(p, SIZE, 1);
	register_and_write(p, SIZE, 2);
	struct usage now = usage_now();
	register_and_write(p + 5, SIZE - 9, 3); /* pages in part stay, too */
	CHECK(idle_pages() == PAGES && usage_now().mappings <= now.mappings, "%ld pages are idle", (long)idle_pages());
	urdma_free(p);
	urdma_free(p);
	urdma_free(NULL);
	nothing_left();
}

/* Freed while it is registered: the next to have the address is another's memory. */
static void freed_early(void)
{
	unsigned char *p = urdma_alloc(SIZE), *q;
	fill(p, SIZE, 4);
	struct urdma_region r = must_share(p, SIZE);
	urdma_free(p);
	q = urdma_alloc(SIZE);
	CHECK(q == p, "another address");
	check_zero(q, SIZE, "fresh");
	unsigned char *view = daemon_view(&r);
	fill(view, SIZE, 5);
	drop_view(view, &r);
	check_zero(q, SIZE, "after a write to what was");
	must_deregister(&r);
	register_and_write(q, SIZE, 6);
	urdma_free(q);
}

static void *wait_for_end(void *arg)
{
	pause();
	return arg;
}

/* Children have a copy of it, and of holes none. */
static void forked(void)
{
	const size_t sparse_size = 256 * (size_t)MIB;
	unsigned char *p = urdma_malloc(SIZE, 1), *sparse = urdma_malloc(sparse_size, 1);
	int status;
	CHECK(p && sparse, "urdma_malloc");
	fill(p, SIZE, 7);
	sparse[100 * MIB] = 1;
	pid_t pid = fork();
	if (pid == 0) {
		alarm(60);
		check(p, SIZE, 7, "in the child");
		CHECK(sparse[100 * MIB] == 1 && sparse[0] == 0, "sparse, in the child");
		fill(p, SIZE, 8);
		CHECK(usage_now().rss_kib < 64 * 1024, "holes of %ld KiB", usage_now().rss_kib);
		CHECK(urdma_malloc_size(p) == SIZE && !urdma_malloc_resize(p, 2 * SIZE), "the size, in the child");
		urdma_free(p);
		unsigned char *q = urdma_alloc(SIZE);
		CHECK(q, "urdma_alloc in a child");
		register_and_write(q, SIZE, 9);
		urdma_free(q);
		urdma_free(sparse);
		_exit(0);
	}
	fill(p, SIZE / 2, 7);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "child %#x", status);
	check(p, SIZE, 7, "in the parent");
	CHECK(sparse[100 * MIB] == 1 && usage_now().rss_kib < 64 * 1024, "holes of %ld KiB", usage_now().rss_kib);
	register_and_write(p, SIZE, 10);
	urdma_free(p);
	urdma_free(sparse);
}

static void mapped(void)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	unsigned char *p = anon(SIZE);
	CHECK(idle_pages() == PAGES && usage_now().file_kib == 0, "mmap: %ld pages are shared", (long)idle_pages());
	fill(p, SIZE, 1);
	register_and_write(p, SIZE, 2);
	CHECK(madvise(p, 100 * PAGE, MADV_DONTNEED) == 0, "madvise");
	check_zero(p, 100 * PAGE, "dropped");
	p = mremap(p, SIZE, 2 * SIZE, MREMAP_MAYMOVE);
	CHECK(p != MAP_FAILED, "mremap");
	check_zero(p, 100 * PAGE, "moved");
	munmap(p, 2 * SIZE);
	nothing_left();
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags | MAP_POPULATE, -1, 0);
	CHECK(usage_now().file_kib == (long)SIZE / 1024, "MAP_POPULATE: %ld KiB", usage_now().file_kib);
	munmap(p, SIZE);
	p = mmap(NULL, SIZE, PROT_NONE, flags, -1, 0);
	CHECK(idle_pages() == 0, "addresses alone");
	CHECK(mmap(p, SIZE, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0) == p && idle_pages() == PAGES, "and then memory");
	fill(p, SIZE, 1);
	CHECK(mmap(p, SIZE, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0) == p && idle_pages() == PAGES, "and other memory");
	check_zero(p, SIZE, "in its place");
	munmap(p, SIZE);
	nothing_left();
}

/* Beside other threads it is shared also where nothing can be moved. */
static void without_userfaultfd(void)
{
	unsigned char *p = urdma_malloc(SIZE, 1);
	pthread_t t;
	pthread_create(&t, NULL, wait_for_end, NULL);
	register_and_write(p, SIZE, 3);
	urdma_free(p);
	forked();
	CHECK(!urdma_malloc(SIZE, 1), "more, although its children copy it");
	p = urdma_alloc(SIZE);
	CHECK(p, "urdma_alloc");
	fill(p, SIZE, 3);
	CHECK(idle_pages() == 0, "it is shared");
	urdma_free(p);
	pthread_cancel(t);
	pthread_join(t, NULL);
}

enum { LIVE = 40, BOUND = 24 * MIB };

struct piece {
	unsigned char *p;
	size_t n;
	unsigned salt;
};

static void make(struct piece *x, uint64_t *seed, size_t *sum)
{
	size_t align = (size_t)1 << below(seed, 22), held;
	x->n = 1 + below(seed, 2 * MIB);
	x->salt = (unsigned)below(seed, 256);
	x->p = urdma_malloc(x->n, align);
	if (!x->p) {
		CHECK(*sum + x->n > BOUND / 4, "none of %zu bytes beside %zu", x->n, *sum);
		return;
	}
	held = urdma_malloc_size(x->p);
	CHECK((uintptr_t)x->p % align == 0 && held >= x->n && held < x->n + PAGE, "%p, %zu of %zu", x->p, held, x->n);
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
	x->p = NULL;
}

/* Against a model, in a bound that is met all the time; then there is one free extent. */
static void model(void)
{
	struct piece live[LIVE] = { { 0 } };
	uint64_t seed = opt.seed;
	size_t sum = 0;
	for (int round = 0; round < 400; round++) {
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
	nothing_left();
	unsigned char *p = urdma_malloc(BOUND, 1);
	CHECK(p && !urdma_malloc(1, 1) && !urdma_malloc_resize(p, BOUND + 1), "all of it");
	urdma_free(p);
	CHECK(!urdma_malloc(SIZE_MAX, 1) && !urdma_alloc(SIZE_MAX), "more than there is");
	CHECK(!urdma_alloc(BOUND + 1) && errno == ENOMEM, "more than there is");
	nothing_left();
}

static void run(void (*test)(void), const char *size)
{
	int status;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(100);
		setenv("URDMA_SHARE_MALLOC", size, 1);
		CHECK((urdma_malloc_least() == SIZE_MAX) == (*size == '0'), "%s", size);
		test();
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "status %#x with a size of %s", status, size);
}

/* Where nothing can be shared it is ordinary memory. */
static void refused(void)
{
	setenv("URDMA_CONVERT", "0", 1);
	urdma_pages_init();
	unsigned char *p = urdma_alloc(SIZE);
	CHECK(p && !urdma_malloc(SIZE, 1), "urdma_alloc");
	fill(p, SIZE, 1);
	struct urdma_region r = must_register(p, SIZE);
	CHECK(r.path == URDMA_PATH_FALLBACK, "it is shared");
	must_deregister(&r);
	urdma_free(p);
	p = urdma_alloc(SIZE);
	check_zero(p, SIZE, "fresh");
	urdma_free(p);
}

int test_born(void)
{
	run(allocated, "0");
	run(freed_early, "0");
	run(forked, "1");
	run(mapped, "1T");
	run(without_userfaultfd, "1G");
	run(model, "24M");
	run(refused, "1");
	return 0;
}
