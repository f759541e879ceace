/* Pages that are in swap when they move, when the daemon reaches for them and when a child
 * copies them: the test's cgroup is emptied before each. */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "torture.h"

void *urdma_alloc(size_t bytes);
void urdma_free(void *p);

enum { MIB = 1 << 20 };
static const size_t SIZE = 10 * (size_t)MIB;

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

/* Everything of this process that can go to swap does: cgroup v2's memory.reclaim takes a
 * number of bytes, v1's memory.force_empty anything. */
static void push_out(void)
{
	int fd = open(getenv("URDMA_TORTURE_RECLAIM"), O_WRONLY);
	CHECK(fd >= 0, "no cgroup to empty");
	ssize_t all = write(fd, "256M", 4); /* EAGAIN: there was less */
	(void)all;
	close(fd);
}

static void forked(const unsigned char *p, unsigned salt)
{
	int status;
	push_out();
	pid_t pid = fork();
	if (pid == 0) {
		check(p, salt, "in the child");
		fill((unsigned char *)p, salt + 1);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "child %#x", status);
	check(p, salt, "in the parent");
}

static void use(unsigned char *p, unsigned salt)
{
	fill(p, salt);
	push_out();
	struct urdma_region r = must_share(p, SIZE);
	push_out();
	check(p, salt, "registered");
	push_out();
	unsigned char *view = daemon_view(&r);
	check(view, salt, "the daemon's view");
	fill(view, salt + 1);
	drop_view(view, &r);
	forked(p, salt + 1);
	push_out();
	must_deregister(&r);
	push_out();
	check(p, salt + 1, "deregistered");
	forked(p, salt + 1);
}

static void round_of(unsigned salt)
{
	unsigned char *p = anon(SIZE);
	use(p, salt);
	use(p, salt + 10); /* again: it may be shared still */
	push_out();
	p = mremap(p, SIZE, SIZE + MIB, MREMAP_MAYMOVE);
	CHECK(p != MAP_FAILED, "mremap");
	push_out();
	check(p, salt + 11, "moved");
	munmap(p, SIZE + MIB);
	p = urdma_alloc(SIZE);
	CHECK(p, "urdma_alloc");
	use(p, salt);
	urdma_free(p);
}

static void *wait_for_end(void *arg)
{
	pause();
	return arg;
}

int test_swap(void)
{
	pthread_t t;
	round_of(3);
	pthread_create(&t, NULL, wait_for_end, NULL);
	round_of(5);
	return 0;
}
