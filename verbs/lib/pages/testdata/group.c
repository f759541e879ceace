/* Memory in a cgroup whose limit the test states as a multiple of it, without swap: what
 * goes beyond is killed. Without forks, with forks, and with forks beside a thread. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

void *urdma_alloc(size_t bytes);
void urdma_free(void *p);

static bool forks;
static const size_t SIZE = (size_t)48 << 20;

static void fill(unsigned char *p, unsigned salt)
{
	for (size_t i = 0; i < SIZE; i += 8)
		*(uint64_t *)(p + i) = i * 7 + salt;
}

static void check(const unsigned char *p, unsigned salt, const char *what)
{
	for (size_t i = 0; i < SIZE; i += 8)
		CHECK(*(const uint64_t *)(p + i) == i * 7 + salt, "%s: byte %zu", what, i);
}

/* The child writes to all that it has inherited. */
static void forked(unsigned char *p, unsigned salt)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		check(p, salt, "in the child");
		fill(p, salt + 1);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "child %#x", status);
	check(p, salt, "in the parent");
}

static void use(unsigned char *p)
{
	fill(p, 1);
	struct urdma_region r = must_share(p, SIZE);
	if (forks)
		forked(p, 1);
	unsigned char *view = daemon_view(&r);
	fill(view, 2);
	drop_view(view, &r);
	must_deregister(&r);
	check(p, 2, "deregistered");
	r = must_share(p, SIZE);
	must_deregister(&r);
	if (forks)
		forked(p, 2);
}

static void *wait_for_end(void *arg)
{
	pause();
	return arg;
}

static int all_kinds(void)
{
	unsigned char *p = anon(SIZE);
	use(p);
	munmap(p, SIZE);
	p = urdma_alloc(SIZE);
	CHECK(p, "urdma_alloc");
	use(p);
	urdma_free(p);
	p = anon(SIZE);
	fill(p, 3);
	must_share(p, SIZE);
	return 0; /* and it ends with that registered */
}

int test_group(void)
{
	return all_kinds();
}

int test_group_forks(void)
{
	forks = true;
	return all_kinds();
}

int test_group_threads(void)
{
	pthread_t t;
	pthread_create(&t, NULL, wait_for_end, NULL);
	return test_group_forks();
}
