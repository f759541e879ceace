/* malloc.c - tests liburdma-malloc.so. "large": 16 MiB of shared memory, also for large allocations;
 * "pages": only for page-aligned allocations; "none": no memory is shared. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			_exit(1);                                              \
		}                                                              \
	} while (0)

enum { KIB = 1024, MIB = 1024 * 1024, MOST = 16 * MIB, LARGE = 300 * KIB };

static int is_shared(const void *p)
{
	char line[512];
	unsigned long from, to;
	int shared = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= (uintptr_t)p && (uintptr_t)p < to)
			shared = strstr(line, "/memfd:urdma") != NULL;
	fclose(f);
	return shared;
}

static void fill(unsigned char *p, size_t n, unsigned salt)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(i / 61 * 7 + salt);
}

static int holds(const unsigned char *p, size_t n, unsigned salt)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != (unsigned char)(i / 61 * 7 + salt))
			return 0;
	return 1;
}

static void kinds(void)
{
	void *p = malloc(100 * KIB), *q = malloc(LARGE);
	volatile size_t too_many = SIZE_MAX / 2;
	unsigned char *zeros;

	CHECK(p && q && !is_shared(p) && is_shared(q));
	CHECK(malloc_usable_size(p) >= 100 * KIB && malloc_usable_size(q) >= LARGE && malloc_usable_size(q) < LARGE + 4096);
	CHECK(malloc_usable_size(NULL) == 0);
	memset(q, 1, LARGE);
	free(p);
	free(q);
	zeros = calloc(3, 100 * KIB);
	CHECK(zeros && is_shared(zeros));
	for (size_t i = 0; i < 300 * KIB; i++)
		CHECK(!zeros[i]);
	free(zeros);
	CHECK(!calloc(too_many, 3) && errno == ENOMEM);
	free(NULL);
}

static void aligned(void)
{
	void *p;

	for (size_t align = sizeof(void *); align <= 4 * MIB; align *= 2) {
		CHECK(posix_memalign(&p, align, LARGE) == 0 && is_shared(p) && (uintptr_t)p % align == 0);
		free(p);
		p = aligned_alloc(align, align);
		CHECK(p && (uintptr_t)p % align == 0);
		free(p);
	}
	CHECK(posix_memalign(&p, 24, LARGE) == EINVAL && posix_memalign(&p, 4, LARGE) == EINVAL);
	CHECK((p = valloc(LARGE)) && (uintptr_t)p % 4096 == 0);
	free(p);
	CHECK((p = pvalloc(LARGE + 1)) && malloc_usable_size(p) >= LARGE + 4096 - LARGE % 4096);
	free(p);
}

/* Between the two allocators, in place and elsewhere. */
static void resized(void)
{
	static const size_t sizes[] = { 50, 200 * KIB, 201 * KIB, 4 * MIB, 3 * MIB, 1 * MIB, 10 * KIB, 5 * MIB, 7 };
	unsigned char *p = realloc(NULL, 10);
	size_t had = 10;

	fill(p, had, 3);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		p = realloc(p, sizes[i]);
		CHECK(p && holds(p, had < sizes[i] ? had : sizes[i], 3));
		CHECK(is_shared(p) == (sizes[i] >= 128 * KIB));
		had = sizes[i];
		fill(p, had, 3);
	}
	p = reallocarray(p, 300, KIB);
	CHECK(p && holds(p, had, 3) && is_shared(p));
	CHECK(!realloc(p, 0));
}

/* Only page-aligned allocations, of any size. */
static void only_pages(void)
{
	enum { N = 2000 };
	static unsigned char *p[N];
	unsigned char *large = malloc(LARGE), *zeros = calloc(3, LARGE);
	void *v;

	CHECK(large && zeros && !is_shared(large) && !is_shared(zeros));
	for (size_t align = 16; align <= 4 * MIB; align *= 2) {
		CHECK(posix_memalign(&v, align, LARGE) == 0 && (uintptr_t)v % align == 0 && is_shared(v) == (align >= 4096));
		fill(v, LARGE, 1);
		CHECK((v = realloc(v, 2 * LARGE)) && holds(v, LARGE, 1));
		free(v);
		CHECK((v = memalign(align, 10)) && (uintptr_t)v % align == 0 && is_shared(v) == (align >= 4096));
		free(v);
	}
	CHECK(posix_memalign(&v, 24, 10) == EINVAL && posix_memalign(&v, 4, 10) == EINVAL);
	CHECK((v = valloc(10)) && is_shared(v) && (v = realloc(v, 20)) && realloc(v, 100000));
	CHECK((v = pvalloc(10)) && is_shared(v) && malloc_usable_size(v) == 4096);
	free(v);
	CHECK((v = aligned_alloc(4096, 0)));
	free(v);
	for (int i = 0; i < N; i++) {
		CHECK((p[i] = aligned_alloc(4096, 4096)) && (uintptr_t)p[i] % 4096 == 0);
		fill(p[i], 4096, (unsigned)i);
	}
	for (int i = 0; i < N; i++) {
		CHECK(holds(p[i], 4096, (unsigned)i));
		free(p[i]);
	}
	free(large);
	free(zeros);
}

/* The C library's own allocations grow, too. */
static void streams(void)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	for (int i = 0; i < 300000; i++)
		fprintf(f, "%06d\n", i);
	fclose(f);
	CHECK(n == 2100000 && !memcmp(text + 7 * 299999, "299999\n", 8) && is_shared(text));
	free(text);
}

/* Allocations beyond the limit are ordinary memory. */
static void used_up(void)
{
	unsigned char *p[20];
	int shared = 0;

	for (int round = 0; round < 3; round++, shared = 0) {
		for (int i = 0; i < 20; i++) {
			CHECK((p[i] = malloc(MIB)));
			shared += is_shared(p[i]);
			fill(p[i], MIB, (unsigned)i);
		}
		CHECK(shared <= MOST / MIB && shared >= MOST / MIB - 1); /* small freed ones may be in between */
		for (int i = 0; i < 20; i++) {
			CHECK(holds(p[i], MIB, (unsigned)i));
			free(p[i]);
		}
	}
	p[0] = malloc(2 * MOST);
	CHECK(p[0] && !is_shared(p[0]));
	free(p[0]);
}

static void *work(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	unsigned char *p[8] = { 0 };
	size_t n[8] = { 0 };

	for (int round = 0; round < 300; round++) {
		int i = rand_r(&seed) % 8;
		size_t want = 1 + (size_t)rand_r(&seed) % MIB;
		CHECK(!p[i] || holds(p[i], n[i], (unsigned)i));
		if (p[i] && rand_r(&seed) % 3 == 0) {
			free(p[i]);
			p[i] = NULL;
			continue;
		}
		n[i] = p[i] && n[i] < want ? n[i] : want;
		CHECK((p[i] = realloc(p[i], want)));
		fill(p[i], n[i] = want, (unsigned)i);
	}
	for (int i = 0; i < 8; i++)
		free(p[i]);
	return NULL;
}

/* A child has a copy, and may use it as its parent does. */
static void forked(void)
{
	unsigned char *p = malloc(LARGE), *q;
	int status;
	pid_t pid;

	fill(p, LARGE, 5);
	pid = fork();
	if (pid == 0) {
		alarm(60);
		CHECK(holds(p, LARGE, 5) && malloc_usable_size(p) >= LARGE && !is_shared(p));
		fill(p, LARGE, 6);
		CHECK((p = realloc(p, 2 * LARGE)) && holds(p, LARGE, 6));
		CHECK((q = malloc(LARGE)));
		free(p);
		free(q);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(holds(p, LARGE, 5));
	free(p);
}

static void threads(void)
{
	pthread_t t[4];

	for (uintptr_t i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, work, (void *)(i + 1)));
	for (int i = 0; i < 10; i++)
		forked();
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void none(void)
{
	void *p = malloc(LARGE), *q;

	CHECK(p && !is_shared(p) && posix_memalign(&q, 4096, LARGE) == 0 && !is_shared(q));
	free(q);
	CHECK((q = valloc(10)) && !is_shared(q));
	free(q);
	CHECK((p = realloc(p, 2 * LARGE)) && !is_shared(p));
	free(p);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "none")) {
		none();
	} else if (!strcmp(what, "pages")) {
		only_pages();
	} else {
		kinds();
		aligned();
		resized();
		streams();
		used_up();
		forked();
		threads();
	}
	return 0;
}
