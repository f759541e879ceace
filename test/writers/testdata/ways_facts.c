/* ways_facts.c - who waits on memory, and what the kernel knows of it and tells. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "writers.h"

/* A word changes with each version in its upper half (little-endian). */
static uint32_t *word_of(unsigned lane)
{
	return (uint32_t *)(void *)lane_at(&cell.mine[lane]) + 1;
}

static volatile int wake_lane = -1;

static void *wake(void *arg)
{
	uint64_t seed = cell.seed ^ 0x77616b65;

	while (!cell.stop) {
		int i = __atomic_load_n(&wake_lane, __ATOMIC_ACQUIRE);

		usleep((useconds_t)below(&seed, 200)); /* so that it waits, at times */
		if (i < 0)
			continue;
		store_lanes((unsigned)i, 1);
		__atomic_store_n(&wake_lane, -1, __ATOMIC_RELEASE);
		syscall(SYS_futex, word_of((unsigned)i), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
	return arg;
}

static void start_futex(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, wake, NULL), "pthread_create");
}

/* FUTEX_WAIT without FUTEX_PRIVATE_FLAG, as of process-shared mutexes and semaphores. */
static void put_futex(unsigned first, unsigned n)
{
	struct timespec patience = { cell.fault ? 1 : 30, 0 };

	for (unsigned i = first; i < first + n; i++) {
		uint32_t before = *(volatile uint32_t *)word_of(i);
		long status;

		__atomic_store_n(&wake_lane, (int)i, __ATOMIC_RELEASE);
		do {
			status = syscall(SYS_futex, word_of(i), FUTEX_WAIT, before, &patience, NULL, 0);
			CHECK(status == 0 || errno != ETIMEDOUT, "who waits on a futex was not woken");
		} while (status == 0 && *(volatile uint32_t *)word_of(i) == before);
		while (__atomic_load_n(&wake_lane, __ATOMIC_ACQUIRE) >= 0)
			usleep(10);
	}
}

const struct way way_futex = { .name = "futex", .kinds = ALL, .whole = true, .most = 4, .start = start_futex, .put = put_futex };

void each_line(const char *path, void (*see)(const char *line))
{
	uintptr_t from = 0, to = 0, at = (uintptr_t)cell.at;
	FILE *f = fopen(path, "re");
	char line[1024];

	CHECK(f, "%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		unsigned long a, b;

		if (sscanf(line, "%lx-%lx ", &a, &b) == 2)
			from = a, to = b;
		if (from < at + SIZE && at < to)
			see(line);
	}
	fclose(f);
}

/* What the program said of its memory. */
static unsigned long *policy_nodes(void)
{
	static unsigned long nodes = 1;

	return &nodes;
}

static void start_said(void)
{
	uintptr_t first = (uintptr_t)cell.at & ~(PAGE - 1);

	CHECK(madvise((void *)first, SIZE, MADV_DONTDUMP) == 0, "MADV_DONTDUMP: %s", strerror(errno));
	CHECK(madvise((void *)first, SIZE, MADV_HUGEPAGE) == 0, "MADV_HUGEPAGE: %s", strerror(errno));
	if (mlock((void *)first, SIZE))
		skip("mlock: %s", strerror(errno));
	if (syscall(SYS_mbind, first, SIZE, MPOL_BIND, policy_nodes(), 8 * sizeof(unsigned long), 0))
		skip("mbind: %s", strerror(errno));
}

static void see_flags(const char *line)
{
	if (strncmp(line, "VmFlags:", 8))
		return;
	for (const char *const *flag = (const char *const[]){ " dd", " hg", " lo", NULL }; *flag; flag++)
		CHECK(strstr(line, *flag), "smaps lacks%s: %s", *flag, line);
}

static void put_said(unsigned first, unsigned n)
{
	int policy = -1;

	store_lanes(first, n);
	each_line("/proc/self/smaps", see_flags);
	CHECK(syscall(SYS_get_mempolicy, &policy, NULL, 0, lane_at(&cell.mine[first]), MPOL_F_ADDR) == 0 && policy == MPOL_BIND,
	      "the policy of mbind is %d", policy);
}

const struct way way_said = { .name = "said", .kinds = PRIVATE | ARENA | MEMFD | SHARED, .whole = true, .start = start_said, .put = put_said };

/* What the program can read of its memory: the same as without RDMA. */
static char was[256];

static void see_mapping(const char *line)
{
	char is[256] = "", rights[8], device[16], path[128] = "";
	unsigned long inode;

	if (sscanf(line, "%*x-%*x %7s %*x %15s %lu %127[^\n]", rights, device, &inode, path) < 3)
		return;
	snprintf(is, sizeof(is), "%s %s %lu %s", rights, device, inode, path);
	if (!was[0])
		strcpy(was, is);
	CHECK(!strcmp(was, is), "/proc/self/maps said \"%s\", and now \"%s\"", was, is);
}

static void put_maps(unsigned first, unsigned n)
{
	unsigned char there[SIZE / PAGE + 1];

	store_lanes(first, n);
	each_line("/proc/self/maps", see_mapping);
	CHECK(mincore((void *)((uintptr_t)cell.at & ~(PAGE - 1)), SIZE, there) == 0, "mincore: %s", strerror(errno));
}

const struct way way_maps = { .name = "maps", .kinds = ALL & ~HEAP, .whole = true, .put = put_maps };

/* A process that dies while its memory is registered. */
static _Noreturn void die(struct cell *told)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	uint64_t seed = cell.seed;
	struct ibv_mr *mr;
	struct end *e;
	int fd = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0 && write(fd, "0x7f", 4) == 4, "coredump_filter: %s", strerror(errno));
	make_buffer();
	*told = cell;
	rdma_open();
	e = end_new(&seed);
	mr = rdma_register(cell.at, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	for (unsigned i = 0; i < cell.lanes; i++) /* each to version 2 */
		rdma_in(e, &cell.mine[i], mr, &seed);
	if (cell.fault)
		madvise((void *)(((uintptr_t)cell.at + PAGE) & ~(PAGE - 1)), PAGE, MADV_DONTDUMP);
	if (setrlimit(RLIMIT_CORE, &all))
		skip("RLIMIT_CORE: %s", strerror(errno));
	abort();
}

/* The bytes of the dump that were at an address of the process. */
static void read_core(int fd, uintptr_t at, char *to, size_t length)
{
	Elf64_Ehdr head;
	Elf64_Phdr p;

	CHECK(pread(fd, &head, sizeof(head), 0) == sizeof(head), "a core without a header");
	for (unsigned i = 0; i < head.e_phnum; i++) {
		CHECK(pread(fd, &p, sizeof(p), (off_t)(head.e_phoff + i * sizeof(p))) == sizeof(p), "a core that ends in its headers");
		if (p.p_type == PT_LOAD && p.p_vaddr <= at && at + length <= p.p_vaddr + p.p_filesz) {
			CHECK(pread(fd, to, length, (off_t)(p.p_offset + at - p.p_vaddr)) == (ssize_t)length, "a core that ends early");
			return;
		}
	}
	CHECK(false, "the core has no memory of %#lx", (unsigned long)at);
}

static void check_core(pid_t pid)
{
	char path[64];
	int fd = open("core", O_RDONLY | O_CLOEXEC);

	snprintf(path, sizeof(path), "core.%d", (int)pid);
	if (fd < 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0, "no core file");
	for (unsigned i = 0; i < cell.lanes; i++) {
		read_core(fd, (uintptr_t)lane_at(&cell.mine[i]), scratch(), cell.length);
		pattern_check(scratch(), cell.mine[i].at, cell.length, 2, "a core has of RDMA's bytes");
		read_core(fd, (uintptr_t)lane_at(&cell.theirs[i]), scratch(), cell.length);
		pattern_check(scratch(), cell.theirs[i].at, cell.length, 1, "a core has of the program's bytes");
	}
	close(fd);
	unlink("core");
	unlink(path);
}

static void dump_core(void)
{
	FILE *f = fopen("/proc/sys/kernel/core_pattern", "re");
	char where[128] = "|";
	int status;
	pid_t pid;

	struct cell *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(told != MAP_FAILED, "mmap: %s", strerror(errno));
	if (!f || !fgets(where, sizeof(where), f) || strncmp(where, "core", 4))
		skip("core dumps go elsewhere: %s", where);
	fclose(f);
	pid = fork();
	if (!pid)
		die(told);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid, "fork: %s", strerror(errno));
	if (WIFEXITED(status))
		_exit(WEXITSTATUS(status)); /* it said why */
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %#x", status);
	if (!WCOREDUMP(status))
		skip("the kernel wrote no core");
	cell = *told;
	check_core(pid);
	cell.writes++;
}

const struct way way_core = { .name = "core", .kinds = PRIVATE | STATIC | ARENA | MEMFD | SHARED, .alone = dump_core };
