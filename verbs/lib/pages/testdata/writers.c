/* Threads that write, read and make system calls while their memory is
 * registered and deregistered under them. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "torture.h"

enum { THREADS = 3, SLOTS = 64, SPAN = 48 * PAGE };

static volatile bool stop;
static char *area;

struct writer {
	pthread_t thread;
	unsigned id;
	uint64_t value[SLOTS]; /* what it wrote last, by slot */
	uint64_t writes;
};

/* Each writer owns one word in each slot; slots are spread over the pages. */
static volatile uint64_t *word(unsigned slot, unsigned id)
{
	uint64_t at = (uint64_t)slot * (SPAN / SLOTS) + id * 8;
	return (volatile uint64_t *)(area + (at & ~UINT64_C(7)));
}

static void *write_words(void *arg)
{
	struct writer *w = arg;
	uint64_t seed = opt.seed + w->id;
	while (!stop) {
		unsigned s = (unsigned)below(&seed, SLOTS);
		volatile uint64_t *p = word(s, w->id);
		CHECK(*p == w->value[s], "slot %u of writer %u: lost a write",
		      s, w->id);
		*p = ++w->value[s];
		w->writes++;
	}
	return NULL;
}

/* What others write must never be seen to go back. */
static void *read_words(void *arg)
{
	uint64_t seen[SLOTS] = { 0 }, seed = opt.seed ^ 99;
	while (!stop) {
		unsigned s = (unsigned)below(&seed, SLOTS);
		uint64_t v = *word(s, 0);
		CHECK(v >= seen[s], "slot %u went back", s);
		seen[s] = v;
	}
	return arg;
}

static void check_words(const struct writer *w)
{
	for (unsigned s = 0; s < SLOTS; s++)
		CHECK(*word(s, w->id) == w->value[s], "slot %u at the end", s);
}

int test_writers(void)
{
	struct writer w[THREADS] = { { 0 } };
	pthread_t reader;
	uint64_t seed = opt.seed, writes = 0;
	long rounds = opt.rounds ? opt.rounds : 3000, shared = 0;
	area = anon(SPAN);
	for (unsigned i = 0; i < THREADS; i++) {
		w[i].id = i;
		pthread_create(&w[i].thread, NULL, write_words, &w[i]);
	}
	pthread_create(&reader, NULL, read_words, NULL);
	for (long i = 0; i < rounds; i++) {
		uint64_t a = below(&seed, SPAN / PAGE) * PAGE;
		uint64_t n = (1 + below(&seed, (SPAN - a) / PAGE)) * PAGE;
		struct urdma_region r = must_share(area + a, n);
		shared++;
		must_deregister(&r);
	}
	stop = true;
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		check_words(&w[i]);
		writes += w[i].writes;
	}
	pthread_join(reader, NULL);
	CHECK(converted() == 0, "%lu pages left", (long)converted());
	printf("%ld conversions under %lu writes\n", shared, (long)writes);
	return 0;
}

/* A thread's own allocations, filled and checked: the neighbours of what is
 * registered, and the heap's metadata between them. */
static void *churn(void *arg)
{
	enum { N = 64 };
	unsigned char *p[N] = { 0 };
	size_t len[N] = { 0 };
	uint64_t seed = opt.seed + (uintptr_t)arg;
	while (!stop) {
		unsigned i = (unsigned)below(&seed, N);
		for (size_t j = 0; j < len[i]; j++)
			CHECK(p[i][j] == (unsigned char)i, "neighbour changed");
		free(p[i]);
		len[i] = 1 + below(&seed, 3000);
		p[i] = malloc(len[i]);
		memset(p[i], (int)i, len[i]);
	}
	for (unsigned i = 0; i < N; i++)
		free(p[i]);
	return NULL;
}

static void register_heap(uint64_t *seed, long *shared)
{
	size_t n = 1 + below(seed, 6000);
	unsigned char *p = malloc(n);
	memset(p, 0xA5, n);
	struct urdma_region r = must_register(p, n);
	*shared += r.path == URDMA_PATH_SHARED;
	for (size_t j = 0; j < n; j++)
		CHECK(p[j] == 0xA5, "byte %zu after register", j);
	memset(p, 0x5A, n);
	must_deregister(&r);
	for (size_t j = 0; j < n; j++)
		CHECK(p[j] == 0x5A, "byte %zu after deregister", j);
	free(p);
}

int test_heap_writers(void)
{
	pthread_t t[THREADS];
	uint64_t seed = opt.seed;
	long rounds = opt.rounds ? opt.rounds : 5000, shared = 0;
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, churn, (void *)(i + 1));
	for (long i = 0; i < rounds; i++)
		register_heap(&seed, &shared);
	stop = true;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK(!opt.full || shared == rounds, "only %ld of %ld converted",
	      shared, rounds);
	printf("%ld of %ld converted\n", shared, rounds);
	return 0;
}

/* System calls into the page that a registration covers in part: none may see
 * EFAULT, whoever runs this. */
static void *call_into(void *arg)
{
	char *p = arg;
	int fd[2];
	uint64_t calls = 0;
	CHECK(pipe(fd) == 0, "pipe");
	while (!stop) {
		char want = (char)calls++;
		CHECK(write(fd[1], &want, 1) == 1, "write");
		ssize_t n = read(fd[0], p, 1);
		CHECK(n == 1, "read into the page: %s", strerror(errno));
		CHECK(*p == want, "a byte the kernel wrote was lost");
	}
	return NULL;
}

int test_system_calls(void)
{
	pthread_t t;
	long rounds = opt.rounds ? opt.rounds : 5000, shared = 0;
	char *p = anon(4 * PAGE);
	pthread_create(&t, NULL, call_into, p + PAGE + 3);
	for (long i = 0; i < rounds; i++) {
		struct urdma_region r = must_register(p + PAGE + 64, 2 * PAGE);
		shared += r.path == URDMA_PATH_SHARED;
		must_deregister(&r);
	}
	stop = true;
	pthread_join(t, NULL);
	CHECK(shared == (opt.full ? rounds : 0), "%ld of %ld converted", shared,
	      rounds);
	printf("%ld of %ld converted\n", shared, rounds);
	return 0;
}
