/*
 * main.c - which cells there are; each runs in a process of its own.
 *
 *   writers [--seconds N] [--seed N] [--way NAME] [--kind NAME] [--dir DIR] [--fault] [--list]
 *
 * Run it by urdma run or urdma exec. --seconds is for all cells together; they run again and
 * again until it is over. With --fault, pages are moved in place of registering them: each
 * cell has to notice. The exit status is 0 if no cell found a wrong byte (with --fault: if
 * each did).
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "writers.h"

#define SKIPPED 77
#define LONGEST 5000 /* milliseconds of a cell in one round: many seeds beat long runs */
#define HANGS 120    /* seconds more than it should take */

const struct way *const ways[] = {
	&way_store, &way_alias, &way_read, &way_readv, &way_recv, &way_vmsplice,
	&way_direct, &way_aio, &way_uring, &way_uring_fixed,
	&way_process_vm, &way_proc_mem, &way_ptrace, &way_clone_vm, &way_vfork, &way_fork, &way_raw_fork, &way_exec,
	&way_dontneed, &way_free, &way_remove, &way_mremap, &way_remap, &way_protect, &way_guard,
	&way_uffd_copy, &way_uffd_zero, &way_ksm, &way_thp, &way_mbind,
	&way_futex, &way_said, &way_maps, &way_core,
	NULL,
};

struct cell cell = { .file = -1, .hole = PTHREAD_MUTEX_INITIALIZER };

static void say(const char *before, const char *format, va_list args)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "%s", before);

	n += vsnprintf(text + n, sizeof(text) - (size_t)n - 1, format, args);
	if (n > (int)sizeof(text) - 2)
		n = sizeof(text) - 2;
	text[n++] = '\n';
	(void)!write(1, text, (size_t)n);
}

void wrong(const char *file, int line, const char *format, ...)
{
	char before[64];
	va_list args;

	snprintf(before, sizeof(before), "    %s:%d: ", file, line);
	va_start(args, format);
	say(before, format, args);
	va_end(args);
	_exit(1);
}

void skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("    ", format, args);
	va_end(args);
	_exit(SKIPPED);
}

int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

uint64_t below(uint64_t *seed, uint64_t n)
{
	uint64_t z = *seed += UINT64_C(0x9E3779B97F4A7C15); /* splitmix64 */

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return (z ^ (z >> 31)) % n;
}

static void *neighbour(void *arg)
{
	neighbour_run();
	return arg;
}

static void put(unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++)
		cell.mine[i].version = next_version(cell.mine[i].version);
	cell.way->put(first, n);
	lanes_check(cell.mine, "the writer has");
	if (cell.way->get)
		cell.way->get(first, n);
	cell.writes++;
}

/* RDMA writes what the other writer wrote, and the other way round. */
static void exchange(struct end *e, const struct ibv_mr *mr, uint64_t *seed)
{
	unsigned i = (unsigned)below(seed, cell.lanes);
	struct lane *l = &cell.mine[i];

	rdma_out(e, l, mr, seed);
	if (cell.way->refer)
		cell.way->refer(i);
	rdma_in(e, l, mr, seed);
	if (cell.way->changed)
		cell.way->changed(i);
	if (cell.way->get)
		cell.way->get(i, 1);
}

static void write_and_check(void)
{
	uint64_t seed = cell.seed ^ 0x77726974;
	struct end *e = end_new(&seed);
	struct ibv_mr *mr = NULL;

	while (now() < cell.end) {
		unsigned first = (unsigned)below(&seed, cell.lanes), n = 1 + (unsigned)below(&seed, cell.lanes - first);

		if (cell.way->most && n > cell.way->most)
			n = cell.way->most;
		if (mr && ((cell.way->anew && cell.shared_with_urdmad) || !below(&seed, 3))) {
			rdma_deregister(mr);
			mr = NULL;
		}
		put(first, n);
		if (!mr && !cell.fault && below(&seed, 2))
			mr = rdma_register(cell.at, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
		if (mr)
			exchange(e, mr, &seed);
	}
	if (!mr && cell.way->finish && !cell.fault)
		mr = rdma_register(cell.at, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (mr && cell.way->finish)
		cell.way->finish(e, mr);
	if (mr)
		rdma_deregister(mr);
	lanes_check(cell.mine, "the writer has in the end");
}

static void cut_into_lanes(void)
{
	cell.length = cell.way->pages ? PAGE : PAGE / 2;
	cell.lanes = (unsigned)(SIZE / (2 * cell.length));
	for (unsigned i = 0; i < cell.lanes; i++) {
		cell.mine[i] = (struct lane){ 2 * i * cell.length, 1 };
		cell.theirs[i] = (struct lane){ (2 * i + 1) * cell.length, 1 };
		pattern_fill(lane_at(&cell.mine[i]), cell.mine[i].at, cell.length, 1);
		pattern_fill(lane_at(&cell.theirs[i]), cell.theirs[i].at, cell.length, 1);
	}
}

static void see_memfd(const char *line)
{
	cell.shared_with_urdmad |= strstr(line, "/memfd:urdma") != NULL;
}

void make_buffer(void)
{
	size_t room = cell.way->room ? cell.way->room : SIZE;

	cell.at = cell.kind->make(room);
	if (cell.way->room) /* a huge page lies in it */
		cell.at = (char *)(((uintptr_t)cell.at + room / 2 - 1) & ~(uintptr_t)(room / 2 - 1));
	cut_into_lanes();
	each_line("/proc/self/maps", see_memfd);
}

/* The cell, in a process of its own. */
static void run_cell(void)
{
	pthread_t thread;

	CHECK(chdir(cell.dir) == 0, "%s: %s", cell.dir, strerror(errno));
	if (cell.way->alone) {
		cell.way->alone();
	} else {
		if (cell.way->helper)
			process_start(); /* it has nothing of what follows */
		make_buffer();
		rdma_open();
		if (cell.way->start)
			cell.way->start();
		CHECK(!pthread_create(&thread, NULL, neighbour, NULL), "pthread_create");
		write_and_check();
		cell.stop = true;
		pthread_join(thread, NULL);
		lanes_check(cell.mine, "the writer has at last");
	}
	printf("    %u writes, %u registrations, %u transfers, %u forks\n", cell.writes, cell.registrations, cell.moves, cell.forks);
	fflush(stdout);
	_exit(0);
}

/* Waits for a cell that may hang; its exit status, or 128 and the signal that ended it. */
static int wait_cell(pid_t pid, int64_t limit)
{
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now() > limit) {
			printf("    it hangs (process %d)\n", (int)pid);
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return 128 + SIGKILL;
		}
		usleep(2000);
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

struct totals {
	unsigned good, bad, skipped;
};

static void try_cell(int64_t length, struct totals *t)
{
	int status;
	pid_t pid;

	fflush(stdout);
	cell.end = now() + length;
	pid = fork();
	if (!pid) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_cell();
	}
	status = wait_cell(pid, cell.end + (cell.fault ? HANGS * 100 : HANGS * 1000));
	kill(-pid, SIGKILL); /* the processes that it made */
	if (status == SKIPPED) {
		t->skipped++;
	} else if ((status != 0) == cell.fault) {
		t->good++;
	} else {
		t->bad++;
	}
	printf("%s %s/%s (seed %llu, status %d)\n", status == SKIPPED ? "skipped" : (status != 0) == cell.fault ? "good" : "WRONG", cell.way->name,
	       cell.kind->name, (unsigned long long)cell.seed, status);
	fflush(stdout);
}

struct wanted {
	const char *way, *kind;
};

/* Calls visit for each cell that is wanted. */
static unsigned each_cell(const struct wanted *w, int64_t length, struct totals *t)
{
	unsigned n = 0;

	for (unsigned i = 0; ways[i]; i++)
		for (unsigned j = 0; kinds[j].name; j++) {
			cell.way = ways[i];
			cell.kind = &kinds[j];
			if (!(ways[i]->kinds & kinds[j].bit) || (w->way && strcmp(w->way, ways[i]->name)) ||
			    (w->kind && strcmp(w->kind, kinds[j].name)) || (cell.fault && kinds[j].bit == HUGE_PAGES))
				continue;
			n++;
			if (t)
				try_cell(length, t);
		}
	return n;
}

static void list(void)
{
	for (unsigned i = 0; ways[i]; i++) {
		printf("%s:", ways[i]->name);
		for (unsigned j = 0; kinds[j].name; j++)
			if (ways[i]->kinds & kinds[j].bit)
				printf(" %s", kinds[j].name);
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	struct wanted w = { NULL, NULL };
	struct totals t = { 0, 0, 0 };
	int64_t seconds = 20, end, length;
	unsigned cells;

	cell.seed = (uint64_t)time(NULL);
	cell.dir = ".";
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--fault"))
			cell.fault = true;
		else if (!strcmp(argv[i], "--list"))
			return list(), 0;
		else if (!strcmp(argv[i], "--seconds"))
			seconds = atoll(value), i++;
		else if (!strcmp(argv[i], "--seed"))
			cell.seed = strtoull(value, NULL, 10), i++;
		else if (!strcmp(argv[i], "--way"))
			w.way = value, i++;
		else if (!strcmp(argv[i], "--kind"))
			w.kind = value, i++;
		else if (!strcmp(argv[i], "--dir"))
			cell.dir = value, i++;
		else
			return fprintf(stderr, "writers: what is %s?\n", argv[i]), 2;
	}
	cells = each_cell(&w, 0, NULL);
	if (!cells)
		return fprintf(stderr, "writers: no such cell\n"), 2;
	length = seconds * 1000 / cells;
	if (length > LONGEST && !cell.fault) /* a cell with the fault ends as soon as it has noticed it */
		length = LONGEST;
	length = length < 20 ? 20 : length;
	end = now() + seconds * 1000;
	printf("%u cells, seed %llu\n", cells, (unsigned long long)cell.seed);
	do {
		each_cell(&w, length, &t);
		cell.seed++;
	} while (!cell.fault && now() + length < end);
	printf("%u good, %u wrong, %u skipped\n", t.good, t.bad, t.skipped);
	return t.bad != 0;
}
