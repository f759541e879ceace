/* messages.c - messages between two ranks: every size, many at once, derived types,
 * several threads. Ranks are paired with their neighbours around a ring. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define MOST (64u << 20)

static void exchange(unsigned char *out, unsigned char *in, size_t n, unsigned seed)
{
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks, got;
	MPI_Status status;

	fill(out, n, seed + (unsigned)rank);
	memset(in, 0xee, n + 1);
	MPI_Sendrecv(out, (int)n, MPI_BYTE, to, 5, in, (int)n, MPI_BYTE, from, 5, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_BYTE, &got);
	CHECK((size_t)got == n && status.MPI_SOURCE == from);
	CHECK(differs(in, n, seed + (unsigned)from) == n);
	CHECK(in[n] == 0xee);
}

/* Around every power of two, where protocols change. */
void point_to_point(void)
{
	unsigned char *out = malloc(MOST + 2), *in = malloc(MOST + 2);

	CHECK(out && in);
	exchange(out, in, 0, 1);
	for (size_t n = 1; n <= MOST; n *= n < 65536 ? 2 : 4)
		for (int by = -1; by <= 1; by++)
			if (n < MOST || by <= 0)
				exchange(out, in, n + (size_t)by, (unsigned)n + (unsigned)by);
	exchange(out, in, MOST, 3);
	free(out);
	free(in);
}

#define FLOOD 400
#define FLOOD_MOST 20000u

static size_t flood_size(int i)
{
	return ((size_t)i * 7919u) % FLOOD_MOST;
}

/* Many at once, received in another order than they were sent, some unexpected. */
void flood(void)
{
	unsigned char *out = malloc(FLOOD * FLOOD_MOST), *in = malloc(FLOOD * FLOOD_MOST);
	int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	MPI_Request requests[2 * FLOOD];

	CHECK(out && in);
	for (int i = 0; i < FLOOD; i++) {
		fill(out + i * FLOOD_MOST, flood_size(i), (unsigned)(i + rank));
		MPI_Isend(out + i * FLOOD_MOST, (int)flood_size(i), MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[i]);
	}
	for (int i = FLOOD; i-- > 0;)
		MPI_Irecv(in + i * FLOOD_MOST, FLOOD_MOST, MPI_BYTE, from, i, MPI_COMM_WORLD, &requests[FLOOD + i]);
	MPI_Waitall(2 * FLOOD, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < FLOOD; i++)
		CHECK(differs(in + i * FLOOD_MOST, flood_size(i), (unsigned)(i + from)) == flood_size(i));
	free(out);
	free(in);
}

#define ROWS 300
#define COLUMNS 200

/* A column of a matrix arrives as a row; a structure with a hole keeps the hole. */
void types(void)
{
	static int matrix[ROWS][COLUMNS], row[ROWS];
	struct mixed { char c; double d; short s[3]; } mixed[50], back[50];
	int lengths[] = { 1, 1, 3 }, to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	MPI_Aint places[] = { offsetof(struct mixed, c), offsetof(struct mixed, d), offsetof(struct mixed, s) };
	MPI_Datatype kinds[] = { MPI_CHAR, MPI_DOUBLE, MPI_SHORT }, column, bare, whole;

	for (int i = 0; i < ROWS * COLUMNS; i++)
		matrix[i / COLUMNS][i % COLUMNS] = i + rank;
	MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &column);
	MPI_Type_commit(&column);
	MPI_Sendrecv(&matrix[0][17], 1, column, to, 1, row, ROWS, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < ROWS; i++)
		CHECK(row[i] == i * COLUMNS + 17 + from);
	MPI_Type_create_struct(3, lengths, places, kinds, &bare);
	MPI_Type_create_resized(bare, 0, sizeof(struct mixed), &whole);
	MPI_Type_commit(&whole);
	memset(back, 0x5a, sizeof(back));
	for (int i = 0; i < 50; i++)
		mixed[i] = (struct mixed){ .c = (char)i, .d = i * 1.5 + rank, .s = { (short)i, 2, (short)rank } };
	MPI_Sendrecv(mixed, 50, whole, to, 2, back, 50, whole, from, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < 50; i++) {
		CHECK(back[i].c == (char)i && back[i].d == i * 1.5 + from && back[i].s[2] == (short)from);
		CHECK(((unsigned char *)&back[i])[1] == 0x5a);
	}
	MPI_Type_free(&column);
	MPI_Type_free(&bare);
	MPI_Type_free(&whole);
}

#define THREADS 4

static void *talk(void *argument)
{
	int tag = (int)(size_t)argument, to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
	unsigned char out[5000], in[5000];

	for (unsigned i = 0; i < 60; i++) {
		size_t n = (i * 97) % sizeof(out);

		fill(out, n, i + (unsigned)(tag + rank));
		MPI_Sendrecv(out, (int)n, MPI_BYTE, to, 100 + tag, in, (int)n, MPI_BYTE, from, 100 + tag, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		CHECK(differs(in, n, i + (unsigned)(tag + from)) == n);
	}
	return NULL;
}

/* Where MPI says that several threads may call it; else one does it all. The ranks
 * meet first: Open MPI's UCX component makes an endpoint for each thread whose first
 * message to a rank is under way beside another's, and messages of different
 * endpoints overtake each other (open-mpi/ompi issue 12833). */
void threads(void)
{
	pthread_t thread[THREADS];
	int provided;

	MPI_Query_thread(&provided);
	talk((void *)(size_t)THREADS);
	for (int i = 0; i < THREADS; i++) {
		CHECK(pthread_create(&thread[i], NULL, talk, (void *)(size_t)i) == 0);
		if (provided < MPI_THREAD_MULTIPLE)
			pthread_join(thread[i], NULL);
	}
	for (int i = 0; i < THREADS && provided == MPI_THREAD_MULTIPLE; i++)
		pthread_join(thread[i], NULL);
}
