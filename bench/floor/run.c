/* Runs one row: forks two clients and their daemons, collects the times. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

#define PINGS 20000u

struct arena {
	struct shared sh;
	uint32_t rtt_ns[PINGS];
	_Atomic uint64_t switches;
};

static int core_of(enum cores cores, int is_client, int who)
{
	switch (cores) {
	case CORES_PAIR: return who;
	case CORES_CROSS: return is_client ? 1 - who : who;
	case CORES_SPLIT: return is_client;
	case CORES_OWN: return 2 * is_client + who;
	default: return -1;
	}
}

/* Executes the Go daemon: build/floord next to this program, see floord/doc.go. */
static void become_go(const struct policy *p, const struct doors *doors, int memory, int who)
{
	char path[4096], args[6][24];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 2);

	if (n < 0)
		return;
	path[n] = 'd';
	path[n + 1] = 0;
	snprintf(args[0], sizeof *args, "%d", memory);
	snprintf(args[1], sizeof *args, "%zu", sizeof(struct shared));
	snprintf(args[2], sizeof *args, "%d", doors->kick[0]);
	snprintf(args[3], sizeof *args, "%d", doors->kick[1]);
	snprintf(args[4], sizeof *args, "%d", who);
	snprintf(args[5], sizeof *args, "%llu", (unsigned long long)p->ack_defer_ns);
	execl(path, path, args[0], args[1], args[2], args[3], args[4], args[5], (char *)NULL);
	fprintf(stderr, "floor: %s: %s; make -C bench/floor builds it\n", path, strerror(errno));
}

static pid_t start(struct arena *a, const struct policy *p, const struct doors *doors, int memory,
		   int is_client, int who)
{
	const struct placement *pl = is_client ? &p->client : &p->daemon;
	struct rusage use;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (place(pl, core_of(p->cores, is_client, who)) != 0)
		_exit(1);
	if (p->go && !is_client) {
		become_go(p, doors, memory, who);
		_exit(1);
	}
	atomic_fetch_add(&a->sh.ready, 1);
	while (!atomic_load(&a->sh.go))
		nap(100000);
	if (is_client)
		run_client(&a->sh, p, doors, who, PINGS, a->rtt_ns);
	else
		run_daemon(&a->sh, p, doors, who);
	getrusage(RUSAGE_SELF, &use);
	atomic_fetch_add(&a->switches, (uint64_t)(use.ru_nvcsw + use.ru_nivcsw));
	_exit(0);
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void summarise(struct arena *a, uint64_t wall_ns, struct result *r)
{
	uint32_t n = 0;
	uint64_t sum = 0;

	while (n < PINGS && a->rtt_ns[n])
		sum += a->rtt_ns[n++];
	memset(r, 0, sizeof *r);
	r->pings = n;
	r->daemon_share = (double)(a->sh.door[0].cpu_ns + a->sh.door[1].cpu_ns) / (double)wall_ns;
	if (n == 0)
		return;
	qsort(a->rtt_ns, n, sizeof *a->rtt_ns, ascending);
	r->mean_us = (double)sum / n / 2e3;
	r->median_us = a->rtt_ns[n / 2] / 2e3;
	r->p90_us = a->rtt_ns[n - 1 - n / 10] / 2e3;
	r->p99_us = a->rtt_ns[n - 1 - n / 100] / 2e3;
	r->worst_us = a->rtt_ns[n - 1] / 2e3;
	r->switches = (double)a->switches / (2.0 * n);
}

static void wait_for(struct arena *a, pid_t client, uint64_t limit_ns)
{
	uint64_t end = now_ns() + limit_ns;

	while (now_ns() < end && waitpid(client, NULL, WNOHANG) == 0)
		nap(2000000);
	atomic_store(&a->sh.stop, 1);
}

static struct arena *map_arena(int memory)
{
	if (memory < 0 || ftruncate(memory, sizeof(struct arena)) != 0)
		return MAP_FAILED;
	return mmap(NULL, sizeof(struct arena), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
}

int run_policy(const struct policy *p, uint64_t limit_ns, struct result *r)
{
	int memory = memfd_create("floor", 0);
	struct arena *a = map_arena(memory);
	struct doors doors = { { eventfd(0, EFD_NONBLOCK), eventfd(0, EFD_NONBLOCK) } };
	pid_t pid[4];
	uint64_t begun;
	int n = 0;

	if (a == MAP_FAILED)
		return -1;
	for (int i = 0; i < p->daemons; i++)
		pid[n++] = start(a, p, &doors, memory, 0, i);
	if (!p->echo)
		pid[n++] = start(a, p, &doors, memory, 1, 1);
	pid[n++] = start(a, p, &doors, memory, 1, 0);
	for (int i = 0; i < 1000 && (int)atomic_load(&a->sh.ready) < n; i++)
		nap(1000000);
	begun = now_ns();
	atomic_store(&a->sh.go, 1);
	wait_for(a, pid[n - 1], limit_ns);
	for (int i = 0; i < n; i++)  /* the first client may have been reaped already */
		while (waitpid(pid[i], NULL, 0) < 0 && errno == EINTR)
			;
	summarise(a, now_ns() - begun, r);
	close(doors.kick[0]);
	close(doors.kick[1]);
	close(memory);
	munmap(a, sizeof *a);
	return 0;
}
