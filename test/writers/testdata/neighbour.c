/*
 * neighbour.c - the party beside the other writer: it registers and deregisters ranges that
 * cover both parties' lanes, moves its own lanes' bytes by RDMA, forks, and maps and unmaps
 * memory. All at random.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "writers.h"

#define REGIONS 4
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

extern pid_t _Fork(void) __attribute__((weak)); /* glibc 2.34 */

static struct end *end;
static uint64_t seed;
static struct region {
	struct ibv_mr *mr;
	size_t first, last; /* bytes */
} regions[REGIONS];

/* What it is to detect: memory that is moved to other pages while its program runs. The
 * bytes are copied, then the copy takes the place of the page. */
static void move_page(char *page)
{
	int fd = memfd_create("moved", MFD_CLOEXEC);
	void *copy;

	CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0, "memfd_create");
	copy = (void *)syscall(SYS_mmap, NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memcpy(copy, page, PAGE);
	for (int i = 0; i < 20; i++)
		sched_yield();
	CHECK(syscall(SYS_mremap, copy, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, page) != -1, "mremap: %s", strerror(errno));
	close(fd);
}

static void move_pages(size_t first, size_t last)
{
	uintptr_t at = ((uintptr_t)cell.at + first + PAGE - 1) & ~(PAGE - 1), to = (uintptr_t)cell.at + last;

	for (; at + PAGE <= to; at += PAGE) /* others' bytes may be on the pages at both ends */
		move_page((char *)at);
	cell.registrations++;
}

static void register_range(void)
{
	struct region *r = &regions[below(&seed, REGIONS)];

	if (r->mr)
		return;
	r->first = below(&seed, SIZE);
	r->last = r->first + 1 + below(&seed, SIZE - r->first);
	if (cell.fault) {
		move_pages(r->first, r->last - r->first > 4 * PAGE ? r->first + 4 * PAGE : r->last);
		return;
	}
	r->mr = rdma_register(cell.at + r->first, r->last - r->first, ACCESS);
	cell.registrations += r->mr != NULL;
}

static void deregister_range(void)
{
	struct region *r = &regions[below(&seed, REGIONS)];

	if (r->mr)
		rdma_deregister(r->mr);
	r->mr = NULL;
}

static const struct region *covering(const struct lane *l)
{
	for (unsigned i = 0; i < REGIONS; i++)
		if (regions[i].mr && regions[i].first <= l->at && l->at + cell.length <= regions[i].last)
			return &regions[i];
	return NULL;
}

static void move_lane(void)
{
	struct lane *l = &cell.theirs[below(&seed, cell.lanes)];
	const struct region *r = covering(l);

	if (!r) {
		l->version = next_version(l->version);
		pattern_fill(lane_at(l), l->at, cell.length, l->version);
	} else if (below(&seed, 2)) {
		rdma_out(end, l, r->mr, &seed);
	} else {
		rdma_in(end, l, r->mr, &seed);
	}
}

static bool common(void)
{
	return cell.kind->bit & COMMON;
}

/* In the child: the neighbour's lanes are as they were when it was made, or, in memory that
 * both have, as they are. The writer's go on changing. */
static void child_checks(void)
{
	lanes_check(cell.theirs, "a child has");
	if (cell.way->whole)
		for (unsigned i = 0; i < cell.lanes; i++)
			pattern_known(lane_at(&cell.mine[i]), cell.mine[i].at, cell.length, "a child has of the other party");
}

/* What the child writes is its own, or both's. */
static void child_writes(void)
{
	for (unsigned i = 0; i < cell.lanes; i++)
		if (common())
			pattern_fill(lane_at(&cell.theirs[i]), cell.theirs[i].at, cell.length, next_version(cell.theirs[i].version));
		else if (!cell.way->holes)
			memset(lane_at(&cell.theirs[i]), 0xEE, cell.length), memset(lane_at(&cell.mine[i]), 0xEE, cell.length);
}


/* 0 in the child, as fork(2). */
int fork_child(unsigned how)
{
	if (how == 1 && _Fork)
		return _Fork();
	return fork();
}

struct cloned {
	int pipe;
};

static int cloned_child(void *arg)
{
	struct cloned *c = arg;
	char byte;

	child_checks();
	(void)!read(c->pipe, &byte, 1);
	child_checks();
	child_writes();
	return 0;
}

static pid_t start_child(unsigned how, int pipe)
{
	static char stack[64 << 10] __attribute__((aligned(16)));
	struct cloned c = { pipe };
	pid_t pid;

	if (how == 2) {
		pid = clone(cloned_child, stack + sizeof(stack), SIGCHLD, &c);
	} else {
		pid = fork_child(how);
		if (!pid)
			_exit(cloned_child(&c));
	}
	CHECK(pid > 0, "fork: %s", strerror(errno));
	return pid;
}

static void wait_child(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "a child ended with status %#x", status);
}

/* A kernel that loses pinned pages of a private mapping at fork(2). */
static bool fork_loses(void)
{
	struct utsname u;
	int major = 0, minor = 0;

	uname(&u);
	sscanf(u.release, "%d.%d", &major, &minor);
	return cell.way->pinned && (major < 6 || (major == 6 && minor < 3));
}

static bool may_fork(void)
{
	return common() || (!cell.way->unforked && !fork_loses());
}

/* The parent writes while the child lives; then the child does. */
static void fork_once(void)
{
	unsigned how = (unsigned)below(&seed, 3);
	int fds[2];
	pid_t pid;

	if (cell.fault || !may_fork())
		return;
	CHECK(pipe(fds) == 0, "pipe");
	pid = start_child(how, fds[0]);
	if (!common()) {
		struct lane *l = &cell.theirs[below(&seed, cell.lanes)];
		const struct region *r = covering(l);

		if (r)
			rdma_in(end, l, r->mr, &seed);
		l = &cell.theirs[below(&seed, cell.lanes)];
		l->version = next_version(l->version);
		pattern_fill(lane_at(l), l->at, cell.length, l->version);
	}
	CHECK(write(fds[1], "", 1) == 1, "write");
	close(fds[0]);
	close(fds[1]);
	wait_child(pid);
	if (common())
		for (unsigned i = 0; i < cell.lanes; i++)
			cell.theirs[i].version = next_version(cell.theirs[i].version);
	lanes_check(cell.theirs, "after a child wrote");
	cell.forks++;
}

static void spawn_once(void)
{
	extern char **environ;
	char *argv[] = { "true", NULL };
	pid_t pid;

	if (posix_spawnp(&pid, "true", NULL, NULL, argv, environ) == 0)
		wait_child(pid);
}

/* Memory that comes and goes beside it. */
static void map_anew(void)
{
	static char *blocks[8];
	static size_t sizes[8];
	unsigned i = (unsigned)below(&seed, 8);
	struct ibv_mr *mr;

	if (blocks[i]) {
		pattern_check(blocks[i], 0, sizes[i], 7, "memory that comes and goes");
		if (i & 1)
			free(blocks[i]);
		else
			munmap(blocks[i], sizes[i]);
	}
	sizes[i] = (1 + below(&seed, 40)) * PAGE;
	blocks[i] = i & 1 ? malloc(sizes[i]) : mmap(NULL, sizes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(blocks[i] && blocks[i] != MAP_FAILED, "memory that comes and goes: %s", strerror(errno));
	if (cell.fault) {
		pattern_fill(blocks[i], 0, sizes[i], 7);
		return;
	}
	mr = rdma_register(blocks[i], sizes[i], ACCESS);
	pattern_fill(blocks[i], 0, sizes[i], 7);
	if (mr)
		rdma_deregister(mr);
}

static void act(void)
{
	uint64_t n = below(&seed, 1000);

	if (n < 300)
		register_range();
	else if (n < 600)
		deregister_range();
	else if (n < 950)
		move_lane();
	else if (n < 985)
		map_anew();
	else if (n < 997)
		fork_once();
	else if (n < 998)
		spawn_once();
	else
		lanes_check(cell.theirs, "the neighbour has");
}

void neighbour_run(void)
{
	seed = cell.seed ^ 0x6e656967;
	pthread_mutex_lock(&cell.hole); /* memory of the end's must not lie in a hole */
	end = end_new(&seed);
	pthread_mutex_unlock(&cell.hole);
	while (!cell.stop) {
		pthread_mutex_lock(&cell.hole);
		act();
		pthread_mutex_unlock(&cell.hole);
		if (cell.way->holes)
			sched_yield(); /* the other party waits for the lock */
	}
	lanes_check(cell.theirs, "the neighbour has");
	for (unsigned i = 0; i < REGIONS; i++)
		if (regions[i].mr)
			rdma_deregister(regions[i].mr);
	lanes_check(cell.theirs, "the neighbour has in the end");
}
