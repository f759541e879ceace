/* fork while threads allocate, the daemon writes and registrations live. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

enum { BUFFERS = 64 };

static volatile bool stop;

/* The first thing it allocates shares a page with its arena's lock and lists,
 * and is registered. */
static void *allocate(void *arg)
{
	enum { N = 128 };
	void *p[N] = { 0 };
	uint64_t seed = opt.seed + (uintptr_t)arg;
	void *first = malloc(64);
	struct urdma_region r = must_register(first, 64);
	while (!stop) {
		unsigned i = (unsigned)below(&seed, N);
		free(p[i]);
		size_t n = 1 + below(&seed, 2000);
		p[i] = malloc(n);
		memset(p[i], 1, n);
	}
	for (unsigned i = 0; i < N; i++)
		free(p[i]);
	must_deregister(&r);
	free(first);
	return NULL;
}

static void wait_ok(pid_t pid, const char *what)
{
	int status = 0;
	CHECK(pid > 0, "%s", what);
	CHECK(waitpid(pid, &status, 0) == pid, "%s", what);
	CHECK(status == 0, "%s: child ended with %#x", what, status);
}

/* The child uses the heap it inherited, all of it, and registers anew. */
static void child_lives(unsigned char **p, const size_t *n)
{
	alarm(120);
	for (unsigned i = 0; i < BUFFERS; i++) {
		for (size_t j = 0; j < n[i]; j++)
			CHECK(p[i][j] == (unsigned char)i, "child: buffer %u", i);
		memset(p[i], 0xCC, n[i]);
		free(p[i]);
	}
	for (unsigned i = 0; i < 500; i++) {
		size_t len = 1 + i * 13 % 5000;
		unsigned char *q = calloc(1, len);
		for (size_t j = 0; j < len; j++)
			CHECK(q[j] == 0, "child: calloc");
		memset(q, 3, len);
		if (i % 3)
			free(q);
	}
	CHECK(converted() == 0, "child owns pages");
	void *q = malloc(10000);
	struct urdma_region r = must_share(q, 10000);
	must_deregister(&r);
	_exit(0);
}

static int into_child(void *arg)
{
	(void)arg;
	CHECK(converted() == 0, "child of clone owns pages");
	return 0;
}

static pid_t fork_by(unsigned way)
{
	return way == 0 ? _Fork() : fork();
}

struct buffers {
	unsigned char *p[BUFFERS];
	size_t n[BUFFERS];
	struct urdma_region r[BUFFERS];
};

/* Half before there are threads: those an ordinary user converts too. */
static void register_around_start(struct buffers *b, pthread_t *t)
{
	uint64_t seed = opt.seed;
	for (unsigned i = 0; i < BUFFERS; i++) {
		b->n[i] = 1 + below(&seed, i % 8 ? 6000 : 300000);
		b->p[i] = malloc(b->n[i]);
		memset(b->p[i], (int)i, b->n[i]);
	}
	for (unsigned i = 0; i < BUFFERS / 2; i++)
		b->r[i] = must_share(b->p[i], b->n[i]);
	for (uintptr_t i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, allocate, (void *)(i + 1));
	for (unsigned i = BUFFERS / 2; i < BUFFERS; i++)
		b->r[i] = must_register(b->p[i], b->n[i]);
}

static void parent_checks(struct buffers *b)
{
	for (unsigned i = 0; i < BUFFERS; i++) {
		for (size_t j = 0; j < b->n[i]; j++)
			CHECK(b->p[i][j] == (unsigned char)i, "parent: buffer %u",
			      i);
		must_deregister(&b->r[i]);
	}
}

int test_fork(void)
{
	static struct buffers b;
	pthread_t t[3];
	long rounds = opt.rounds ? opt.rounds : 60;
	register_around_start(&b, t);
	for (long k = 0; k < rounds; k++) {
		/* _Fork takes no allocator's locks, so its child may not
		 * allocate: that one only checks. */
		pid_t pid = fork_by((unsigned)k % 8 == 7 ? 0 : 1);
		if (pid == 0 && k % 8 == 7)
			_exit(converted() != 0);
		if (pid == 0)
			child_lives(b.p, b.n);
		wait_ok(pid, "fork");
	}
	char *stack = anon(64 * 1024);
	wait_ok(clone(into_child, stack + 64 * 1024, SIGCHLD, NULL), "clone");
	parent_checks(&b);
	stop = true;
	for (unsigned i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	/* An ordinary user's partly covered pages stay while there are threads,
	 * and those have ended now. */
	for (int i = 0; i < 64; i++) {
		struct urdma_region q = must_share(stack, 1);
		must_deregister(&q);
	}
	CHECK(converted() == 0, "%lu pages left", (long)converted());
	return 0;
}

/* Several threads fork at once while another registers. */
static void *fork_often(void *arg)
{
	long rounds = opt.rounds ? opt.rounds : 60;
	for (long i = 0; i < rounds; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			alarm(120);
			free(malloc(100));
			_exit(converted() != 0);
		}
		wait_ok(pid, "one of several forks");
	}
	return arg;
}

int test_fork_together(void)
{
	pthread_t t[5];
	uint64_t seed = opt.seed;
	for (uintptr_t i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, fork_often, NULL);
	for (uintptr_t i = 3; i < 5; i++)
		pthread_create(&t[i], NULL, allocate, (void *)i);
	for (int i = 0; i < 300; i++) {
		size_t n = 1 + below(&seed, 20000);
		void *p = malloc(n);
		struct urdma_region r = must_register(p, n);
		must_deregister(&r);
		free(p);
	}
	for (unsigned i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	stop = true;
	pthread_join(t[3], NULL);
	pthread_join(t[4], NULL);
	return 0;
}

/* A thread counts up in the pages' words, page by page: at any one moment no
 * word is ahead of one before it, and none is behind by more than 1. */
enum { LEDGER_PAGES = 24 };

static void *count_up(void *arg)
{
	volatile uint64_t *p = arg;
	for (uint64_t n = 1; !stop; n++)
		for (size_t i = 0; i < LEDGER_PAGES; i++)
			p[i * PAGE / 8] = n;
	return NULL;
}

static int ledger_is_of_one_moment(const volatile uint64_t *p)
{
	uint64_t first = p[0], last = first;
	for (size_t i = 0; i < LEDGER_PAGES; i++) {
		if (p[i * PAGE / 8] > last)
			return 0;
		last = p[i * PAGE / 8];
	}
	return first - last <= 1;
}

/* Pages covered in part, where the allocator's metadata is: the child's copy of
 * them is of one moment. The threads that count wait for nothing. */
int test_fork_moment(void)
{
	pthread_t t;
	struct urdma_region r[LEDGER_PAGES];
	long rounds = opt.rounds ? opt.rounds : 200;
	char *p = anon(LEDGER_PAGES * PAGE);
	for (size_t i = 0; i < LEDGER_PAGES; i++)
		r[i] = must_share(p + i * PAGE + 64, 100);
	pthread_create(&t, NULL, count_up, p);
	for (long i = 0; i < rounds; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(!ledger_is_of_one_moment((uint64_t *)(void *)p));
		wait_ok(pid, "a copy of several moments");
	}
	stop = true;
	pthread_join(t, NULL);
	for (size_t i = 0; i < LEDGER_PAGES; i++)
		must_deregister(&r[i]);
	return 0;
}

/* In each word one byte is the daemon's and one is the program's. Neither may
 * lose a write to the other while the pages change hands for a fork. */
struct side {
	volatile unsigned char *base;
	size_t words;
	unsigned offset;
	unsigned char *expect;
	uint64_t writes;
};

static void *write_bytes(void *arg)
{
	struct side *s = arg;
	uint64_t seed = opt.seed + s->offset;
	while (!stop) {
		size_t w = below(&seed, s->words);
		volatile unsigned char *p = s->base + w * 8 + s->offset;
		CHECK(*p == s->expect[w], "word %zu, byte %u: %#x, not %#x", w,
		      s->offset, *p, s->expect[w]);
		*p = ++s->expect[w];
		s->writes++;
	}
	return NULL;
}

static void check_side(const struct side *s, const unsigned char *base)
{
	for (size_t w = 0; w < s->words; w++)
		CHECK(base[w * 8 + s->offset] == s->expect[w], "word %zu", w);
}

int test_fork_daemon(void)
{
	const size_t len = 16 * PAGE, skip = opt.full ? 100 * 8 : 0;
	pthread_t t[2];
	unsigned char *p = (unsigned char *)anon(len + 2 * PAGE) + skip;
	long rounds = opt.rounds ? opt.rounds : 150;
	/* A thread first: an ordinary user's next window is user mode only. */
	struct side program = { p, len / 8, 2, calloc(1, len / 8), 0 };
	pthread_create(&t[0], NULL, write_bytes, &program);
	struct urdma_region r = must_share(p, len);
	struct side daemon = { daemon_view(&r), len / 8, 5, calloc(1, len / 8), 0 };
	pthread_create(&t[1], NULL, write_bytes, &daemon);
	for (long i = 0; i < rounds; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			/* Private: neither side may see this. */
			memset((void *)(uintptr_t)p, 0xFF, len);
			_exit(0);
		}
		wait_ok(pid, "fork");
	}
	stop = true;
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	check_side(&program, p);
	check_side(&daemon, p);
	check_side(&program, (unsigned char *)(uintptr_t)daemon.base);
	printf("%ld forks under %lu program's and %lu daemon's writes\n", rounds,
	       (long)program.writes, (long)daemon.writes);
	must_deregister(&r);
	return 0;
}

static bool is_mapped(const void *p)
{
	unsigned char v;
	return mincore((void *)((uintptr_t)p & ~(uintptr_t)(PAGE - 1)), PAGE, &v) == 0;
}

/* A fork that no handler sees inherits no shared page; what the program keeps
 * from its children by madvise(2) stays kept. */
int test_fork_advice(void)
{
	unsigned char *p = anon(8 * PAGE);
	memset(p, 1, 8 * PAGE);
	struct urdma_region r = must_share(p + 100, 5 * PAGE);
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(is_mapped(p) || is_mapped(p + 2 * PAGE));
	wait_ok(pid, "a raw clone inherits shared pages");
	CHECK(madvise(p + 2 * PAGE, PAGE, MADV_DONTFORK) == 0, "MADV_DONTFORK");
	for (int i = 0; i < 3; i++) {
		pid = fork();
		if (pid == 0)
			_exit(p[0] != 1 || p[5 * PAGE + 50] != 1 ||
			      is_mapped(p + 2 * PAGE) || p[3 * PAGE] != 1);
		wait_ok(pid, "fork after MADV_DONTFORK");
	}
	CHECK(madvise(p + 2 * PAGE, PAGE, MADV_DOFORK) == 0, "MADV_DOFORK");
	pid = fork();
	if (pid == 0)
		_exit(p[2 * PAGE] != 1);
	wait_ok(pid, "fork after MADV_DOFORK");
	must_deregister(&r);
	return 0;
}

static void *idle(void *arg)
{
	pause();
	return arg;
}

/* What was kept from children before it was registered stays kept, also where the
 * child copies, and costs it no other page. */
int test_fork_advised_before(void)
{
	pthread_t t;
	unsigned char *p = anon(4 * PAGE);
	memset(p, 1, 4 * PAGE);
	CHECK(madvise(p + PAGE, 2 * PAGE, MADV_DONTFORK) == 0, "MADV_DONTFORK");
	struct urdma_region r = must_share(p, 4 * PAGE);
	pthread_create(&t, NULL, idle, NULL);
	pid_t pid = fork();
	if (pid == 0)
		_exit(is_mapped(p + PAGE) || is_mapped(p + 2 * PAGE) ||
		      p[0] != 1 || p[3 * PAGE] != 1);
	wait_ok(pid, "fork of what was not to be inherited");
	must_deregister(&r);
	return 0;
}

static unsigned char *is_copied(unsigned char *p, const char *what)
{
	pid_t pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < 6 * PAGE; i++)
			CHECK(p[i] == 1, "%s: byte %zu", what, i);
		memset(p, 2, 6 * PAGE);
		_exit(0);
	}
	wait_ok(pid, what);
	for (size_t i = 0; i < 6 * PAGE; i++)
		CHECK(p[i] == 1, "%s: the child wrote byte %zu", what, i);
	return p;
}

/* A child that can't copy in the usual way: no descriptor is left for the pipe
 * to its parent, or the program closed the memfd's. */
int test_fork_descriptors(void)
{
	pthread_t t;
	int fds[300], n = 0;
	const struct rlimit few = { 300, 300 };
	unsigned char *p = anon(6 * PAGE);
	memset(p, 1, 6 * PAGE);
	struct urdma_region r = must_share(p, 6 * PAGE);
	pthread_create(&t, NULL, idle, NULL);
	is_copied(p, "descriptors enough");
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0, "setrlimit");
	while ((fds[n] = dup(2)) >= 0)
		n++;
	is_copied(p, "no descriptor left");
	close(fds[--n]); /* one is left, to look into /proc */
	is_copied(p, "one descriptor left");
	while (n > 0)
		close(fds[--n]);
	close(urdma_pages_file(r.file_id));
	is_copied(p, "no memfd");
	must_deregister(&r);
	return 0;
}
