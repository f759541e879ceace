/* Children have their own copy of the arena, however they were made, and delay no other thread. */
#include <errno.h>
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

enum { PAGES = 300 };
static const size_t SIZE = (size_t)PAGES * PAGE;

static long rss_kib(void)
{
	char line[128];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

/* The copy is private, holes are not copied, and new allocations of the child are shared again. */
static void child_lives(unsigned char *p, unsigned char *sparse)
{
	alarm(60);
	check(p, SIZE, 7, "in the child");
	CHECK(sparse[100 * MIB] == 1 && sparse[0] == 0, "sparse, in the child");
	fill(p, SIZE, 8);
	CHECK(rss_kib() < 64 * 1024, "holes of %ld KiB", rss_kib());
	CHECK(urdma_malloc_size(p) == SIZE && !urdma_malloc_resize(p, 2 * SIZE), "the size, in the child");
	must_fall_back(p, SIZE);
	CHECK(madvise(p, PAGE, MADV_DONTNEED) == 0, "madvise");
	check_zero(p, PAGE, "dropped");
	unsigned char *q = urdma_alloc(SIZE);
	CHECK(q, "urdma_alloc in a child");
	struct urdma_region r = must_share(q, SIZE);
	unsigned char *view = daemon_view(&r);
	fill(view, SIZE, 9);
	check(q, SIZE, 9, "the child's own");
	urdma_free(p);
	CHECK(urdma_malloc_size(p) == 0, "freed");
	pid_t pid = fork();
	if (pid == 0) {
		check(q, SIZE, 9, "in the grandchild");
		CHECK(sparse[100 * MIB] == 1, "sparse, in the grandchild");
		fill(q, SIZE, 1);
		urdma_free(q);
		_exit(urdma_alloc(PAGE) == NULL);
	}
	wait_ok(pid, "a grandchild");
	check(q, SIZE, 9, "the child's own, behind a fork");
	urdma_free(q);
	_exit(0);
}

int test_forked(void)
{
	unsigned char *p = urdma_malloc(SIZE, 1, false), *sparse = urdma_malloc(256 * MIB, 1, false);
	CHECK(p && sparse, "urdma_malloc");
	for (int i = 0; i < 12; i++) { /* more often than there are arenas */
		fill(p, SIZE, 7);
		sparse[100 * MIB] = 1;
		pid_t pid = fork();
		if (pid == 0)
			child_lives(p, sparse);
		check(p, SIZE, 7, "in the parent");
		fill(p, SIZE, 20);
		wait_ok(pid, "fork");
		check(p, SIZE, 20, "in the parent");
		must_share(p, SIZE);
	}
	CHECK(mappings_of_memfd() == 1, "%ld mappings", mappings_of_memfd());
	urdma_free(p);
	urdma_free(sparse);
	CHECK(file_kib() == 0, "%ld KiB left", file_kib());
	return 0;
}

static volatile bool stop;

/* Each thread allocates and frees all the time; children check memory that doesn't change. */
static void *churn(void *arg)
{
	unsigned char *p[16] = { 0 };
	uint64_t seed = opt.seed + (uintptr_t)arg;
	while (!stop) {
		unsigned i = (unsigned)below(&seed, 16);
		urdma_free(p[i]);
		size_t n = 1 + below(&seed, 60 * PAGE);
		p[i] = urdma_alloc(n);
		CHECK(p[i], "urdma_alloc");
		check_zero(p[i], n, "beside a fork");
		memset(p[i], 0x55, n);
	}
	for (int i = 0; i < 16; i++)
		urdma_free(p[i]);
	return NULL;
}

static void *fork_often(void *arg)
{
	unsigned char *p = urdma_alloc(SIZE);
	unsigned salt = (unsigned)(uintptr_t)arg;
	for (int i = 0; i < 15; i++) {
		fill(p, SIZE, salt + (unsigned)i);
		pid_t pid = fork();
		if (pid == 0) {
			alarm(60);
			check(p, SIZE, salt + (unsigned)i, "in a child");
			unsigned char *q = urdma_alloc(PAGE);
			memset(q, 1, PAGE);
			memset(p, 2, SIZE);
			_exit(0);
		}
		wait_ok(pid, "one of several forks");
		check(p, SIZE, salt + (unsigned)i, "in the parent");
	}
	urdma_free(p);
	return arg;
}

int test_fork_threads(void)
{
	pthread_t t[5];
	for (uintptr_t i = 0; i < 5; i++)
		pthread_create(&t[i], NULL, i < 3 ? fork_often : churn, (void *)(i + 1));
	for (unsigned i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	stop = true;
	pthread_join(t[3], NULL);
	pthread_join(t[4], NULL);
	CHECK(!urdma_malloc(PAGE, PAGE, false), "malloc shares more, although its children copy it");
	CHECK(file_kib() <= 4096, "%ld KiB left", file_kib());
	return 0;
}

static unsigned char *of_child;

static int into_child(void *arg)
{
	(void)arg;
	check(of_child, SIZE, 7, "in a child of clone");
	fill(of_child, SIZE, 8);
	return 0;
}

/* A child without handlers has a hole; one that shares the address space has the memory. */
int test_fork_kinds(void)
{
	unsigned char *p = of_child = urdma_alloc(SIZE);
	char *stack = anon(64 * 1024);
	fill(p, SIZE, 7);
	pid_t pid = _Fork();
	if (pid == 0) {
		into_child(NULL);
		_exit(0);
	}
	wait_ok(pid, "_Fork");
	wait_ok(clone(into_child, stack + 64 * 1024, SIGCHLD, NULL), "clone");
	check(p, SIZE, 7, "in the parent");
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(is_mapped(p) || is_mapped(p + SIZE - 1));
	wait_ok(pid, "a raw clone inherits the arena");
	wait_ok(clone(into_child, stack + 64 * 1024, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL), "a clone with CLONE_VM");
	check(p, SIZE, 8, "what it wrote");
	return 0;
}

static pid_t forked; /* the child, once fork has returned */
static bool has_returned, stops;

static void *fork_once(void *arg)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	forked = pid;
	__atomic_store_n(&has_returned, true, __ATOMIC_RELEASE);
	return arg;
}

static void stop_child(void)
{
	if (stops)
		raise(SIGSTOP);
}

/* Registered before ours, whose constructor has no priority: so in the child it runs first. */
__attribute__((constructor(101))) static void register_first(void)
{
	pthread_atfork(NULL, NULL, stop_child);
}

/* While a child is stopped before it has its copy, all other threads continue; memory that they free is
 * released when the child has continued or was killed. */
static void end_child(int signal_number)
{
	pthread_t t;
	int status;
	siginfo_t info = { 0 };
	unsigned char *p = urdma_alloc(SIZE), *q;
	fill(p, SIZE, 1);
	has_returned = false;
	stops = true;
	pthread_create(&t, NULL, fork_once, NULL);
	while (waitid(P_ALL, 0, &info, WSTOPPED | WEXITED | WNOWAIT) && errno == ECHILD)
		usleep(1000);
	CHECK(info.si_code == CLD_STOPPED, "code %d", info.si_code);
	stops = false;
	urdma_free(p);
	for (int i = 0; i < 3; i++) {
		q = urdma_alloc(SIZE);
		check_zero(q, SIZE, "beside a stopped child");
		fill(q, SIZE, 1);
		must_share(q, SIZE);
		urdma_free(q);
		munmap(anon(PAGE), PAGE);
		free(malloc(300000));
	}
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	wait_ok(pid, "another fork");
	CHECK(!__atomic_load_n(&has_returned, __ATOMIC_ACQUIRE), "fork returned before its child had the copy");
	kill(info.si_pid, signal_number);
	pthread_join(t, NULL);
	CHECK(forked == info.si_pid && waitpid(forked, &status, 0) == forked, "child");
	CHECK(signal_number == SIGKILL ? WIFSIGNALED(status) : status == 0, "status %#x", status);
	CHECK(file_kib() == 0, "%ld KiB: what was freed meanwhile stays", file_kib());
}

int test_fork_ends(void)
{
	end_child(SIGCONT);
	end_child(SIGKILL);
	return 0;
}

static void is_copied(unsigned char *p, const char *what)
{
	pid_t pid = fork();
	if (pid == 0) {
		check(p, SIZE, 1, what);
		fill(p, SIZE, 2);
		_exit(0);
	}
	wait_ok(pid, what);
	check(p, SIZE, 1, what);
}

/* No descriptor is left for the pipe to the parent, or the program has closed the memfd. */
int test_fork_descriptors(void)
{
	int fds[300], n = 0;
	const struct rlimit few = { 300, 300 };
	unsigned char *p = urdma_alloc(SIZE), *other = urdma_alloc(SIZE), *guarded = urdma_alloc(SIZE);
	fill(p, SIZE, 1);
	CHECK(mprotect(guarded, PAGE, PROT_NONE) == 0, "mprotect");
	is_copied(p, "descriptors enough");
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0, "setrlimit");
	while ((fds[n] = dup(2)) >= 0)
		n++;
	is_copied(p, "no descriptor left");
	while (n > 0)
		close(fds[--n]);
	close(urdma_pages_file());
	is_copied(p, "no memfd");
	is_copied(p, "no memfd, again");
	CHECK(dup2(2, 200) == 200, "dup2");
	is_copied(p, "another file's descriptor");
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(is_mapped(p));
	wait_ok(pid, "a raw clone inherits the arena");
	must_share(p, SIZE);
	fill(other, SIZE, 3);
	urdma_free(other);
	CHECK(madvise(p, PAGE, MADV_DONTNEED) == 0, "madvise");
	check_zero(p, PAGE, "dropped");
	return 0;
}

static void *fork_here(void *arg)
{
	unsigned char *p = arg, mark = 77;
	pid_t pid = fork();
	if (pid == 0) {
		check(p, SIZE, 7, "in a child of a thread");
		mark = 78;
		_exit(mark != 78);
	}
	wait_ok(pid, "fork of a thread");
	CHECK(mark == 77, "the child wrote to its parent's stack");
	return NULL;
}

/* Threads' stacks that the program allocates from the arena are copied, too. */
int test_fork_stacks(void)
{
	enum { STACK = 64 * 1024 };
	pthread_attr_t attr;
	pthread_t t[3];
	unsigned char *p = urdma_alloc(SIZE);
	char *stack[3];
	fill(p, SIZE, 7);
	pthread_attr_init(&attr);
	for (int i = 0; i < 3; i++) /* before a thread forks: afterwards it allocates nothing more */
		stack[i] = urdma_malloc(STACK, PAGE, false);
	for (int i = 0; i < 3; i++) {
		strcpy(stack[i], "what it held");
		CHECK(pthread_attr_setstack(&attr, stack[i], STACK) == 0, "setstack");
		CHECK(!strcmp(stack[i], "what it held"), "lost");
		must_fall_back(stack[i], STACK);
		pthread_create(&t[i], &attr, i ? wait_for_end : fork_here, p);
	}
	pthread_join(t[0], NULL);
	pid_t pid = fork();
	if (pid == 0) {
		check(p, SIZE, 7, "in a child");
		strcpy(stack[2], "the child's");
		_exit(0);
	}
	wait_ok(pid, "fork");
	CHECK(!strcmp(stack[2], "what it held"), "the child wrote it");
	for (int i = 1; i < 3; i++) {
		pthread_cancel(t[i]);
		pthread_join(t[i], NULL);
	}
	for (int i = 0; i < 3; i++)
		urdma_free(stack[i]);
	CHECK(mappings_of_memfd() == 1, "%ld mappings", mappings_of_memfd());
	must_share(urdma_alloc(STACK), STACK);
	return 0;
}

static unsigned char *of_handler;
static volatile int handled;

static void fork_in_handler(int number)
{
	(void)number;
	pid_t pid = _Fork();
	if (pid == 0)
		_exit(of_handler[0] != 7 || of_handler[SIZE - 1] != (unsigned char)((SIZE - 1) / 61 * 7 + 7));
	int status = 1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	CHECK(pid > 0 && status == 0, "status %#x", status);
	handled++;
}

/* A signal handler forks at any point of the thread's work. */
int test_fork_signal(void)
{
	of_handler = urdma_alloc(SIZE);
	fill(of_handler, SIZE, 7);
	signal(SIGALRM, fork_in_handler);
	ualarm(2000, 2000);
	while (handled < 60) {
		unsigned char *p = urdma_malloc(3 * PAGE, PAGE, false), *q = urdma_alloc(50 * PAGE);
		must_share(q, 50 * PAGE);
		urdma_free(p);
		urdma_free(q);
	}
	ualarm(0, 0);
	return 0;
}

/* Memory that the program maps over its allocated pages is inherited. */
int test_fork_mapped(void)
{
	unsigned char *p = urdma_malloc(SIZE, 1, false);
	CHECK(p, "urdma_malloc");
	for (unsigned i = 0; i < PAGES; i++) {
		unsigned char *page = p + i * PAGE;
		bool own = i == 0 || i == 6 || i == PAGES - 1;
		CHECK(!own || mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == page,
			"mmap");
		fill(page, PAGE, i);
	}
	pid_t pid = fork();
	for (unsigned i = 0; i < PAGES; i++)
		check(p + i * PAGE, PAGE, i, pid ? "in the parent" : "in the child");
	if (pid == 0)
		_exit(0);
	wait_ok(pid, "fork");
	return 0;
}
