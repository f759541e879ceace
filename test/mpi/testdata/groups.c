/* groups.c - what all ranks do together: collectives, windows, new processes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void move_to_all(int *a, int *b, int n)
{
	for (int root = 0; root < ranks; root++) {
		for (int i = 0; i < n; i++)
			a[i] = rank == root ? i + root : -1;
		MPI_Bcast(a, n, MPI_INT, root, MPI_COMM_WORLD);
		for (int i = 0; i < n; i++)
			CHECK(a[i] == i + root);
	}
	for (int i = 0; i < n; i++)
		a[i] = i + rank;
	MPI_Allgather(a, n, MPI_INT, b, n, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < n * ranks; i++)
		CHECK(b[i] == i % n + i / n);
	MPI_Scatter(b, n, MPI_INT, a, n, MPI_INT, ranks - 1, MPI_COMM_WORLD);
	CHECK(a[n - 1] == n - 1 + rank);
	MPI_Gather(a, n, MPI_INT, b, n, MPI_INT, 0, MPI_COMM_WORLD);
	for (int i = 0; rank == 0 && i < n * ranks; i++)
		CHECK(b[i] == i % n + i / n);
}

static void transpose(int *a, int *b, int n)
{
	for (int i = 0; i < n * ranks; i++)
		a[i] = rank * 1000 + i / n;
	MPI_Alltoall(a, n, MPI_INT, b, n, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < n * ranks; i++)
		CHECK(b[i] == i / n * 1000 + rank);
}

/* Each rank gives rank r as many elements as r plus one. */
static void uneven(int *a, int *b)
{
	int out[ranks], out_at[ranks], in[ranks], in_at[ranks], n = 0;

	for (int r = 0; r < ranks; r++) {
		out[r] = r + 1;
		out_at[r] = n;
		for (int i = 0; i <= r; i++)
			a[n++] = rank * 100 + r;
		in[r] = rank + 1;
		in_at[r] = r * (rank + 1);
	}
	MPI_Alltoallv(a, out, out_at, MPI_INT, b, in, in_at, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < ranks * (rank + 1); i++)
		CHECK(b[i] == i / (rank + 1) * 100 + rank);
}

static void reduce(int *a, int *b, int n)
{
	int all = ranks * (ranks - 1) / 2, before = rank * (rank + 1) / 2;

	for (int i = 0; i < n; i++)
		a[i] = i + rank;
	MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		CHECK(b[i] == i * ranks + all);
	MPI_Reduce(a, b, n, MPI_INT, MPI_MAX, ranks - 1, MPI_COMM_WORLD);
	for (int i = 0; rank == ranks - 1 && i < n; i++)
		CHECK(b[i] == i + ranks - 1);
	MPI_Scan(a, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		CHECK(b[i] == i * (rank + 1) + before);
	for (int i = 0; i < n * ranks; i++)
		a[i] = i + rank;
	MPI_Reduce_scatter_block(a, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		CHECK(b[i] == (rank * n + i) * ranks + all);
}

void collectives(void)
{
	static const int sizes[] = { 1, 7, 1000, 50000 };
	MPI_Request request;

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		int n = sizes[s], *a = malloc(sizeof(*a) * (size_t)(n * ranks + ranks * ranks)), *b = malloc(sizeof(*b) * (size_t)(n * ranks + ranks * ranks));

		CHECK(a && b);
		move_to_all(a, b, n);
		transpose(a, b, n);
		uneven(a, b);
		reduce(a, b, n);
		MPI_Ibarrier(MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		free(a);
		free(b);
	}
}

#define CELLS 4096

static void by_fence(MPI_Win window, long *cells)
{
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	long out[CELLS], in[CELLS];

	for (int i = 0; i < CELLS; i++)
		out[i] = rank * 10000L + i;
	MPI_Win_fence(0, window);
	MPI_Put(out, CELLS, MPI_LONG, to, 0, CELLS, MPI_LONG, window);
	MPI_Win_fence(0, window);
	for (int i = 0; i < CELLS; i++)
		CHECK(cells[i] == from * 10000L + i);
	MPI_Win_fence(0, window);
	MPI_Get(in, CELLS, MPI_LONG, to, 0, CELLS, MPI_LONG, window);
	MPI_Win_fence(0, window);
	for (int i = 0; i < CELLS; i++)
		CHECK(in[i] == out[i]);
	for (int i = 0; i < CELLS; i++)
		cells[i] = 0;
	MPI_Win_fence(0, window);
	for (int r = 0; r < ranks; r++)
		MPI_Accumulate(out, CELLS, MPI_LONG, r, 0, CELLS, MPI_LONG, MPI_SUM, window);
	MPI_Win_fence(0, window);
	for (int i = 0; i < CELLS; i++)
		CHECK(cells[i] == (long)i * ranks + 10000L * ranks * (ranks - 1) / 2);
}

/* Every rank adds to one counter of rank 0: no value is had twice. Rank 0 itself
 * swaps nothing: Open MPI 4.1.4 crashes when a rank does so in its own window,
 * over shared memory too. */
static void by_lock(MPI_Win window, long *cells)
{
	long one = 1, got, last = -1, expected, old;

	if (rank == 0)
		cells[0] = cells[1] = 0;
	MPI_Win_fence(0, window);
	for (int i = 0; i < 100; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
		MPI_Fetch_and_op(&one, &got, MPI_LONG, 0, 0, MPI_SUM, window);
		MPI_Win_unlock(0, window);
		CHECK(got > last && got < 100L * ranks);
		last = got;
	}
	if (rank != 0) do {
		long next;

		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
		MPI_Get(&expected, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
		MPI_Win_flush(0, window);
		next = expected + 1;
		MPI_Compare_and_swap(&next, &expected, &old, MPI_LONG, 0, 1, window);
		MPI_Win_unlock(0, window);
	} while (old != expected);
	MPI_Win_fence(0, window);
	if (rank == 0)
		CHECK(cells[0] == 100L * ranks && cells[1] == ranks - 1);
	MPI_Win_fence(0, window);
}

/* Post, start, complete, wait: who is exposed says to whom. */
static void by_post(MPI_Win window, long *cells)
{
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	MPI_Group world, origin, target;
	long value = 77 + rank;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &from, &origin);
	MPI_Group_incl(world, 1, &to, &target);
	MPI_Win_post(origin, 0, window);
	MPI_Win_start(target, 0, window);
	MPI_Put(&value, 1, MPI_LONG, to, 5, 1, MPI_LONG, window);
	MPI_Win_complete(window);
	MPI_Win_wait(window);
	CHECK(cells[5] == 77 + from);
	MPI_Group_free(&world);
	MPI_Group_free(&origin);
	MPI_Group_free(&target);
}

void one_sided(void)
{
	MPI_Win window;
	long *cells;

	MPI_Win_allocate(CELLS * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &cells, &window);
	by_fence(window, cells);
	by_lock(window, cells);
	by_post(window, cells);
	MPI_Win_free(&window);
}

/* Two more processes, which add what they are sent. */
void spawn(const char *self)
{
	MPI_Comm children;
	int sum = 0, give = rank + 1, got = 0;

	MPI_Comm_spawn(self, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
	MPI_Reduce(NULL, &got, 1, MPI_INT, MPI_SUM, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, children);
	MPI_Allreduce(&give, &sum, 1, MPI_INT, MPI_SUM, children);
	CHECK(sum == 2 * 50 && (rank != 0 || got == sum));
	MPI_Comm_disconnect(&children);
}

void spawned(MPI_Comm parent)
{
	int parents, sum = 0, give = 50;

	MPI_Comm_remote_size(parent, &parents);
	MPI_Reduce(&give, NULL, 1, MPI_INT, MPI_SUM, 0, parent);
	MPI_Allreduce(&give, &sum, 1, MPI_INT, MPI_SUM, parent);
	CHECK(sum == parents * (parents + 1) / 2);
	MPI_Comm_disconnect(&parent);
}
