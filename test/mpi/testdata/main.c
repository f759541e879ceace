/*
 * main.c - MPI programs that check every byte: "check TEST...", each test by its
 * name; "abort" and "die" end one rank in the middle of what the others do.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

int rank, ranks;

void fill(unsigned char *at, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		at[i] = (unsigned char)(i * 31 + i / 251 + seed * 7);
}

size_t differs(const unsigned char *at, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		if (at[i] != (unsigned char)(i * 31 + i / 251 + seed * 7))
			return i;
	return n;
}

/* Everybody is at work when rank 1 goes. */
static void leave(int by_signal)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 1 && by_signal)
		raise(SIGKILL);
	if (rank == 1)
		MPI_Abort(MPI_COMM_WORLD, 3);
	for (;;) {
		int one = 1, sum;

		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	}
}

static void run(const char *test, const char *self)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		{ "point_to_point", point_to_point }, { "flood", flood }, { "types", types },
		{ "collectives", collectives }, { "one_sided", one_sided }, { "threads", threads },
	};

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (strcmp(test, tests[i].name) == 0) {
			tests[i].run();
			return;
		}
	if (strcmp(test, "spawn") == 0)
		spawn(self);
	else if (strcmp(test, "abort") == 0 || strcmp(test, "die") == 0)
		leave(test[0] == 'd');
	else
		CHECK(!"a test of that name");
}

int main(int argc, char **argv)
{
	MPI_Comm parent;
	int provided;

	/* Some of Open MPI's components refuse to be called by several threads. */
	MPI_Init_thread(&argc, &argv, argc > 1 && strcmp(argv[1], "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL)
		spawned(parent);
	for (int i = 1; i < argc && parent == MPI_COMM_NULL; i++) {
		run(argv[i], argv[0]);
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 0)
			printf("OK: %s, %d ranks, threads %d\n", argv[i], ranks, provided);
		fflush(stdout);
	}
	MPI_Finalize();
	return 0;
}
