/* No growth over many rounds, the limits of the system, and what it costs. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "torture.h"

static void one_round(uint64_t *seed)
{
	size_t n = below(seed, 64) ? 1 + below(seed, 8000)
	                           : 1 + below(seed, 400000);
	char *p = malloc(n);
	p[0] = p[n - 1] = 7;
	struct urdma_region r = must_share(p, n);
	bool early = below(seed, 2);
	if (early)
		free(p);
	must_deregister(&r);
	if (!early) {
		CHECK(p[0] == 7 && p[n - 1] == 7, "content");
		free(p);
	}
}

static void check_growth(struct usage a, struct usage b)
{
	printf("RSS %ld -> %ld KiB, fds %ld -> %ld, mappings %ld -> %ld, "
	       "memory files %ld KiB\n", a.rss_kib, b.rss_kib, a.fds, b.fds,
	       a.mappings, b.mappings, b.file_kib);
	CHECK(b.rss_kib <= a.rss_kib + 4096, "RSS grew");
	CHECK(b.fds == a.fds, "descriptors grew");
	/* A piece that stays is 16 pages or more, and cuts the heap and what waits aside. */
	CHECK(b.mappings <= a.mappings + 16 + (long)idle_pages() / 4, "mappings grew");
	CHECK(only_idle(), "memory files hold pages");
	CHECK(converted() == 0, "pages left");
}

static void *idle(void *arg)
{
	pause();
	return arg;
}

int test_rounds(void)
{
	uint64_t seed = opt.seed;
	long rounds = opt.rounds ? opt.rounds : 100000;
	pthread_t t;
	for (int i = 0; i < 500; i++)
		one_round(&seed);
	struct usage before = usage_now();
	for (long i = 0; i < rounds / 2; i++)
		one_round(&seed);
	check_growth(before, usage_now());
	if (!opt.full)
		return 0; /* with threads, partly covered pages fall back */
	pthread_create(&t, NULL, idle, NULL);
	for (int i = 0; i < 500; i++)
		one_round(&seed);
	before = usage_now();
	for (long i = 0; i < rounds / 2; i++)
		one_round(&seed);
	check_growth(before, usage_now());
	return 0;
}

/* Many small registrations at once and at different addresses of the heap:
 * given back, the heap is one mapping again. */
int test_scatter(void)
{
	const int N = opt.rounds ? (int)opt.rounds : 6000;
	struct urdma_region *r = calloc((size_t)N, sizeof *r);
	char **p = calloc((size_t)N, sizeof *p);
	uint64_t seed = opt.seed;
	for (int i = 0; i < N; i++)
		p[i] = memset(malloc(12000), 1, 12000);
	struct urdma_region first = must_share(p[0], 1);
	must_deregister(&first);
	struct usage before = usage_now();
	for (int k = 0; k < 3; k++) {
		for (int i = 0; i < N; i++) {
			memset(p[i], i, 12000);
			r[i] = must_share(p[i] + below(&seed, 4000), 3000);
		}
		for (int i = 0; i < N; i++)
			must_deregister(&r[(i * 7) % N]);
		for (int i = 0; i < N; i++)
			for (int j = 0; j < 12000; j += 50)
				CHECK(p[i][j] == (char)i, "content");
	}
	check_growth(before, usage_now());
	return 0;
}

/* Out of mappings: a fallback with its reason, and nothing lost. */
int test_limits(void)
{
	enum { N = 40000 };
	static struct urdma_region r[N];
	long shared = 0;
	unsigned char *p = anon((size_t)N * 2 * PAGE);
	for (long i = 0; i < N; i++)
		p[i * 2 * PAGE] = (unsigned char)i;
	for (long i = 0; i < N; i++) {
		r[i] = must_register(p + i * 2 * PAGE, 64);
		shared += r[i].path == URDMA_PATH_SHARED;
	}
	printf("%ld of %d converted, then: %s\n", shared, N,
	       r[N - 1].why ? r[N - 1].why : "no limit met");
	CHECK(shared > 10000, "too few");
	for (long i = 0; i < N; i++)
		must_deregister(&r[i]);
	for (long i = 0; i < N; i++)
		CHECK(p[i * 2 * PAGE] == (unsigned char)i, "page %ld", i);
	struct rlimit fsize = { 1 << 20, RLIM_INFINITY };
	CHECK(setrlimit(RLIMIT_FSIZE, &fsize) == 0, "setrlimit");
	struct urdma_region q = must_register(p, PAGE);
	CHECK(q.path == URDMA_PATH_FALLBACK, "converted under ulimit -f");
	printf("under ulimit -f: %s\n", q.why);
	return 0;
}

static double now_us(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The shortest of many, elapsed and on the processor: other work on the
 * machine makes rounds longer, never shorter. */
struct cost {
	double elapsed, cpu, from, cpu_from;
};

static void start(struct cost *c)
{
	c->from = now_us(CLOCK_MONOTONIC);
	c->cpu_from = now_us(CLOCK_THREAD_CPUTIME_ID);
}

static void end(struct cost *c)
{
	double cpu = now_us(CLOCK_THREAD_CPUTIME_ID) - c->cpu_from;
	double elapsed = now_us(CLOCK_MONOTONIC) - c->from;
	if (c->elapsed == 0 || elapsed < c->elapsed)
		c->elapsed = elapsed;
	if (c->cpu == 0 || cpu < c->cpu)
		c->cpu = cpu;
}

static void bench_size(const char *who, size_t n, long rounds)
{
	char *p = anon(n);
	struct cost in = { 0 }, again = { 0 }, out = { 0 };
	memset(p, 1, n);
	for (long i = 0; i < rounds; i++) {
		start(&in);
		struct urdma_region r = must_share(p, n);
		end(&in);
		start(&again);
		struct urdma_region s = must_share(p, n);
		must_deregister(&s);
		end(&again);
		start(&out);
		must_deregister(&r);
		end(&out);
	}
	printf("%-10s %6zu KiB: register %8.1f us (cpu %8.1f), deregister "
	       "%8.1f us (cpu %8.1f), both if shared already %5.1f us\n",
	       who, n / 1024, in.elapsed, in.cpu, out.elapsed, out.cpu,
	       again.elapsed);
	munmap(p, n);
}

static void bench_all(const char *who)
{
	bench_size(who, PAGE, 5000);
	bench_size(who, 1 << 20, 300);
	bench_size(who, 64 << 20, 10);
}

/* The longest that another thread waited for its page, in each registration of
 * 64 MiB: the least of them, for the machine has other work. */
static volatile double longest;
static volatile bool stop_touching;

static void *touch(void *arg)
{
	const size_t pages = (64 << 20) / PAGE;
	uint64_t seed = opt.seed;
	volatile char *p = arg;
	while (!stop_touching) {
		double t0 = now_us(CLOCK_MONOTONIC);
		p[below(&seed, pages) * PAGE]++;
		double t = now_us(CLOCK_MONOTONIC) - t0;
		if (t > longest)
			longest = t;
	}
	return NULL;
}

static void bench_stall(void)
{
	pthread_t t;
	double in = 1e9, out = 1e9;
	char *p = anon(64 << 20);
	memset(p, 1, 64 << 20);
	pthread_create(&t, NULL, touch, p);
	for (int i = 0; i < 20; i++) {
		longest = 0;
		struct urdma_region r = must_share(p, 64 << 20);
		in = longest < in ? longest : in;
		longest = 0;
		must_deregister(&r);
		out = longest < out ? longest : out;
	}
	stop_touching = true;
	pthread_join(t, NULL);
	printf("longest wait of another thread: register %.0f us, "
	       "deregister %.0f us\n", in, out);
}

int test_bench(void)
{
	pthread_t t;
	bench_all("one thread");
	pthread_create(&t, NULL, idle, NULL);
	bench_all("threaded");
	bench_stall();
	return 0;
}
