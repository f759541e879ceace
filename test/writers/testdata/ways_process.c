/* ways_process.c - other processes: by the kernel, in the same memory, or as children. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "writers.h"

enum job { WRITE_VM, READ_VM, WRITE_MEM, READ_MEM, POKE, PEEK, FILL, QUIT };

/* What the other process is asked, in memory of both. */
static struct mailbox {
	uint32_t asked, answered; /* counters, on which each waits */
	enum job job;
	char *to;
	size_t at;
	uint32_t version;
	pid_t thread; /* that asks */
	char problem[128];
	char bytes[PAGE];
} *box;

static long futex(uint32_t *at, int op, uint32_t value)
{
	return syscall(SYS_futex, at, op, value, NULL, NULL, 0);
}

static void complain(const char *what)
{
	snprintf(box->problem, sizeof(box->problem), "%s: %s", what, strerror(errno));
}

static void by_process_vm(bool writes)
{
	struct iovec here = { box->bytes, cell.length }, there = { box->to, cell.length };
	ssize_t n = writes ? process_vm_writev(getppid(), &here, 1, &there, 1, 0) : process_vm_readv(getppid(), &here, 1, &there, 1, 0);

	if (n != (ssize_t)cell.length)
		complain(writes ? "process_vm_writev" : "process_vm_readv");
}

static void by_proc_mem(bool writes)
{
	static int fd = -1;
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)getppid());
	if (fd < 0)
		fd = open(path, O_RDWR | O_CLOEXEC);
	n = writes ? pwrite(fd, box->bytes, cell.length, (off_t)box->to) : pread(fd, box->bytes, cell.length, (off_t)box->to);
	if (n != (ssize_t)cell.length)
		complain(path);
}

/* The thread that asks stops meanwhile. */
static void by_ptrace(bool writes)
{
	int status;

	if (ptrace(PTRACE_SEIZE, box->thread, NULL, NULL) || ptrace(PTRACE_INTERRUPT, box->thread, NULL, NULL) ||
	    waitpid(box->thread, &status, __WALL) != box->thread) {
		complain("PTRACE_SEIZE");
		return;
	}
	for (size_t i = 0; i < cell.length; i += sizeof(long)) {
		long *here = (long *)(void *)(box->bytes + i);

		errno = 0;
		if (!writes)
			*here = ptrace(PTRACE_PEEKDATA, box->thread, box->to + i, NULL);
		else
			ptrace(PTRACE_POKEDATA, box->thread, box->to + i, *here);
		if (errno)
			complain("PTRACE_POKEDATA, PTRACE_PEEKDATA");
	}
	ptrace(PTRACE_DETACH, box->thread, NULL, NULL);
}

static void serve(void)
{
	bool writes = box->job == WRITE_VM || box->job == WRITE_MEM || box->job == POKE;

	if (writes)
		pattern_fill(box->bytes, box->at, cell.length, box->version);
	switch (box->job) {
	case WRITE_VM:
	case READ_VM:
		by_process_vm(writes);
		break;
	case WRITE_MEM:
	case READ_MEM:
		by_proc_mem(writes);
		break;
	default:
		by_ptrace(writes);
	}
}

/* A child from before there is anything: it has none of the memory. */
void process_start(void)
{
	pid_t pid;

	box = mmap(NULL, sizeof(*box), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(box != MAP_FAILED, "mmap: %s", strerror(errno));
	cell.length = cell.way->pages ? PAGE : PAGE / 2; /* as cut_into_lanes will have it */
	pid = fork();
	if (pid) {
		prctl(PR_SET_PTRACER, pid, 0, 0, 0); /* fails without Yama */
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint32_t n = 0;; n++) {
		while (__atomic_load_n(&box->asked, __ATOMIC_ACQUIRE) == n)
			futex(&box->asked, FUTEX_WAIT, n);
		serve();
		__atomic_store_n(&box->answered, n + 1, __ATOMIC_RELEASE);
		futex(&box->answered, FUTEX_WAKE, INT_MAX);
	}
}

static void ask(enum job job, const struct lane *l)
{
	uint32_t n = box->answered;

	box->job = job;
	box->to = lane_at(l);
	box->at = l->at;
	box->version = l->version;
	box->thread = (pid_t)syscall(SYS_gettid);
	__atomic_store_n(&box->asked, n + 1, __ATOMIC_RELEASE);
	futex(&box->asked, FUTEX_WAKE, INT_MAX);
	while (__atomic_load_n(&box->answered, __ATOMIC_ACQUIRE) == n)
		futex(&box->answered, FUTEX_WAIT, n);
	CHECK(!box->problem[0], "another process: %s", box->problem);
}

static void ask_each(enum job job, unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++)
		ask(job, &cell.mine[i]);
}

static void ask_and_check(enum job job, unsigned first, unsigned n, const char *what)
{
	for (unsigned i = first; i < first + n; i++) {
		ask(job, &cell.mine[i]);
		pattern_check(box->bytes, cell.mine[i].at, cell.length, cell.mine[i].version, what);
	}
}

static void put_process_vm(unsigned first, unsigned n)
{
	ask_each(WRITE_VM, first, n);
}

static void get_process_vm(unsigned first, unsigned n)
{
	ask_and_check(READ_VM, first, n, "process_vm_readv");
}

const struct way way_process_vm = { .name = "process-vm", .kinds = ALL, .helper = true, .put = put_process_vm, .get = get_process_vm };

static void put_proc_mem(unsigned first, unsigned n)
{
	ask_each(WRITE_MEM, first, n);
}

static void get_proc_mem(unsigned first, unsigned n)
{
	ask_and_check(READ_MEM, first, n, "/proc/PID/mem");
}

const struct way way_proc_mem = { .name = "proc-mem", .kinds = ALL, .helper = true, .put = put_proc_mem, .get = get_proc_mem };

static void put_ptrace(unsigned first, unsigned n)
{
	ask_each(POKE, first, n);
}

static void get_ptrace(unsigned first, unsigned n)
{
	ask_and_check(PEEK, first, n, "PTRACE_PEEKDATA");
}

const struct way way_ptrace = { .name = "ptrace", .kinds = ALL, .helper = true, .most = 2, .put = put_ptrace, .get = get_ptrace };

/* A process with the same memory that is no thread: it has the thread-local variables of
 * whoever made it, so it makes no call that sets errno. */
static int fill_when_asked(void *arg)
{
	(void)arg;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint32_t n = 0; box->job != QUIT; n++) {
		while (__atomic_load_n(&box->asked, __ATOMIC_ACQUIRE) == n)
			sched_yield();
		pattern_fill(box->to, box->at, cell.length, box->version);
		__atomic_store_n(&box->answered, n + 1, __ATOMIC_RELEASE);
	}
	return 0;
}

static void start_clone_vm(void)
{
	static char stack[64 << 10] __attribute__((aligned(16)));
	static struct mailbox of_both;

	box = &of_both;
	CHECK(clone(fill_when_asked, stack + sizeof(stack), CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL) > 0, "clone: %s", strerror(errno));
}

static void put_clone_vm(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++) {
		uint32_t before = box->answered;

		box->to = lane_at(&cell.mine[i]);
		box->at = cell.mine[i].at;
		box->version = cell.mine[i].version;
		__atomic_store_n(&box->asked, before + 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&box->answered, __ATOMIC_ACQUIRE) == before)
			sched_yield();
	}
}

const struct way way_clone_vm = { .name = "clone-vm", .kinds = ALL, .whole = true, .start = start_clone_vm, .put = put_clone_vm };

static void put_vfork(unsigned first, unsigned n)
{
	pid_t pid = vfork();
	int status;

	if (!pid) {
		store_lanes(first, n);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "vfork: %s", strerror(errno));
}

const struct way way_vfork = { .name = "vfork", .kinds = ALL, .whole = true, .put = put_vfork };

static void check_before(unsigned first, unsigned n, const char *what)
{
	for (unsigned i = first; i < first + n; i++) {
		const struct lane *l = &cell.mine[i];

		pattern_check(lane_at(l), l->at, cell.length, l->version == 1 ? VERSIONS : l->version - 1, what);
	}
}

static void wait_good(pid_t pid)
{
	int status;

	CHECK(pid > 0, "fork: %s", strerror(errno));
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "a child ended with status %#x", status);
}

void check_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		lanes_check(cell.mine, "a child has");
		_exit(0);
	}
	wait_good(pid);
}

/* A child writes what both have; or parent and child write, each its own. */
static void put_fork(unsigned first, unsigned n)
{
	bool common = cell.kind->bit & COMMON;
	int fds[2];
	char byte;
	pid_t pid;

	CHECK(pipe(fds) == 0, "pipe: %s", strerror(errno));
	pid = fork_child(first % 2);
	if (!pid && common) {
		check_before(first, n, "a child has");
		store_lanes(first, n);
		_exit(0);
	}
	if (!pid) {
		check_before(first, n, "a child has");
		(void)!read(fds[0], &byte, 1);
		check_before(first, n, "after its parent wrote, a child has");
		for (unsigned i = first; i < first + n; i++)
			memset(lane_at(&cell.mine[i]), 0xEE, cell.length);
		_exit(0);
	}
	if (!common)
		store_lanes(first, n);
	CHECK(write(fds[1], "", 1) == 1, "write");
	wait_good(pid);
	close(fds[0]);
	close(fds[1]);
}

const struct way way_fork = { .name = "fork", .kinds = ALL, .whole = true, .put = put_fork };

/* The library hears nothing of a system call. Memory that urdmad maps is not there then. */
static void put_raw_fork(unsigned first, unsigned n)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (!pid) {
		unsigned char there[SIZE / PAGE];

		if (cell.shared_with_urdmad)
			_exit(mincore(cell.at, SIZE, there) == 0 || errno != ENOMEM);
		check_before(first, n, "a child made by a system call has");
		_exit(0);
	}
	wait_good(pid);
	store_lanes(first, n);
}

const struct way way_raw_fork = { .name = "raw-fork", .kinds = ALL & ~(HEAP | STATIC), .whole = true, .put = put_raw_fork };

/* What another program is given: no descriptor by which it has this one's memory. */
static void put_exec(unsigned first, unsigned n)
{
	char line[512];
	FILE *f;

	store_lanes(first, n);
	if (first % 8)
		return;
	f = popen("exec ls -l /proc/self/fd", "re");
	CHECK(f, "popen: %s", strerror(errno));
	while (fgets(line, sizeof(line), f))
		CHECK(!strstr(line, "memfd:") && !strstr(line, "/mem\n"), "another program has %s", line);
	CHECK(pclose(f) == 0, "ls /proc/self/fd");
}

const struct way way_exec = { .name = "exec", .kinds = PRIVATE | ARENA | MEMFD, .whole = true, .put = put_exec };
