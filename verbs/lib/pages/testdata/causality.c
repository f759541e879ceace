/* fork while the daemon places and reads: what it announced must be seen, and
 * what was written before it was told must be read, whoever forks meanwhile. */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

enum { PAGES = 12, IN = 5, OUT = 6 }; /* words: the daemon's, the program's */

struct traffic {
	uint64_t *mine, *view; /* the program's and the daemon's mapping */
	size_t pages;          /* whose first bytes are registered */
	bool edges;            /* pages covered in part: the threads wait */
	uint64_t completed, posted;
	uint64_t stale_receives, stale_sends, receives, sends;
	bool stop;
};

static volatile uint64_t *word(uint64_t *base, size_t page, unsigned w)
{
	return base + page * PAGE / 8 + w;
}

static bool running(struct traffic *t)
{
	return !__atomic_load_n(&t->stop, __ATOMIC_RELAXED);
}

/* Stands in for urdmad: fills the pages and completes; reads what was posted. */
static void *daemon_places(void *arg)
{
	struct traffic *t = arg;
	for (uint64_t n = 1; running(t); n++) {
		for (size_t i = 0; i < t->pages; i++)
			*word(t->view, i, IN) = n;
		__atomic_store_n(&t->completed, n, __ATOMIC_RELEASE);
		sched_yield();
	}
	return NULL;
}

static void *daemon_sends(void *arg)
{
	struct traffic *t = arg;
	while (running(t)) {
		uint64_t want = __atomic_load_n(&t->posted, __ATOMIC_ACQUIRE);
		for (size_t i = 0; i < t->pages; i++)
			t->stale_sends += *word(t->view, i, OUT) < want;
		t->sends++;
		sched_yield();
	}
	return NULL;
}

static void *program_polls(void *arg)
{
	struct traffic *t = arg;
	while (running(t)) {
		uint64_t want = __atomic_load_n(&t->completed, __ATOMIC_ACQUIRE);
		if (t->edges)
			urdma_pages_await_fork();
		for (size_t i = 0; i < t->pages; i++)
			t->stale_receives += *word(t->mine, i, IN) < want;
		t->receives++;
	}
	return NULL;
}

static void *program_posts(void *arg)
{
	struct traffic *t = arg;
	for (uint64_t n = 1; running(t); n++) {
		for (size_t i = 0; i < t->pages; i++)
			*word(t->mine, i, OUT) = n;
		if (t->edges)
			urdma_pages_await_fork();
		__atomic_store_n(&t->posted, n, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* The child's copy holds all that was there when fork was called, it is the
 * child's alone, and it doesn't change. */
static void child_checks(struct traffic *t, uint64_t completed, uint64_t posted)
{
	uint64_t seen[PAGES];
	alarm(20);
	for (size_t i = 0; i < t->pages; i++) {
		seen[i] = *word(t->mine, i, IN);
		CHECK(seen[i] >= completed && *word(t->mine, i, OUT) >= posted,
		      "the child's page %zu is from before the fork", i);
		CHECK(*word(t->mine, i, 7) == i + 1, "child: page %zu", i);
	}
	usleep(500);
	for (size_t i = 0; i < t->pages; i++) {
		CHECK(*word(t->mine, i, IN) == seen[i], "child: shared page");
		memset(t->mine + i * PAGE / 8, 0xFF, 64);
	}
	_exit(0);
}

static void fork_under(struct traffic *t, long rounds)
{
	for (long i = 0; i < rounds; i++) {
		uint64_t completed, posted;
		int status = 0;
		completed = __atomic_load_n(&t->completed, __ATOMIC_ACQUIRE);
		posted = __atomic_load_n(&t->posted, __ATOMIC_ACQUIRE);
		pid_t pid = fork();
		if (pid == 0)
			child_checks(t, completed, posted);
		CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
		      "fork: child ended with %#x", status);
	}
}

static void run_traffic(struct traffic *t, size_t len)
{
	void *(*const parts[])(void *) = { daemon_places, daemon_sends,
		                           program_polls, program_posts };
	enum { PARTS = sizeof parts / sizeof *parts };
	pthread_t thread[PARTS];
	for (size_t i = 0; i < t->pages; i++)
		*word(t->mine, i, 7) = i + 1;
	/* Before there are threads: an ordinary user converts edges only then. */
	struct urdma_region r = must_share(t->mine, len);
	t->view = daemon_view(&r);
	for (size_t i = 0; i < PARTS; i++)
		pthread_create(&thread[i], NULL, parts[i], t);
	fork_under(t, opt.rounds ? opt.rounds : 300);
	__atomic_store_n(&t->stop, true, __ATOMIC_RELAXED);
	for (size_t i = 0; i < PARTS; i++)
		pthread_join(thread[i], NULL);
	for (size_t i = 0; i < t->pages; i++)
		CHECK(*word(t->mine, i, 7) == i + 1, "the child wrote here");
	drop_view(t->view, &r);
	must_deregister(&r);
	printf("%lu looks at completions, %lu at posts: %lu stale, %lu stale\n",
	       (long)t->receives, (long)t->sends, (long)t->stale_receives,
	       (long)t->stale_sends);
	CHECK(t->stale_receives == 0, "completed, and not to be seen");
	CHECK(t->stale_sends == 0, "posted, and not what was sent");
}

/* Wholly covered pages: nobody waits for anything. */
int test_fork_causality(void)
{
	struct traffic t = { .mine = anon(PAGES * PAGE), .pages = PAGES };
	run_traffic(&t, PAGES * PAGE);
	return 0;
}

/* Two pages, each covered in part. */
int test_fork_causality_edges(void)
{
	struct traffic t = { .mine = anon(PAGES * PAGE), .pages = 2,
		             .edges = true };
	run_traffic(&t, PAGE + 100);
	return 0;
}
