#include <shmem.h>
#include <stdio.h>

/* Each rank adds to a variable of the next rank's data, and fills an array there. */

#define ADDITIONS 1000
#define LENGTH (1 << 20)

static long sum;
static unsigned char array[LENGTH], source[LENGTH];

static unsigned char pattern(int i, int rank)
{
	return (unsigned char)(i * 7 + i / 256 + rank);
}

int main(void)
{
	int rank, ranks, wrong = 0;

	shmem_init();
	rank = shmem_my_pe();
	ranks = shmem_n_pes();
	for (int i = 0; i < LENGTH; i++)
		source[i] = pattern(i, rank);
	for (int i = 0; i < ADDITIONS; i++)
		shmem_long_atomic_add(&sum, 1, (rank + 1) % ranks);
	shmem_putmem(array, source, LENGTH, (rank + 1) % ranks);
	shmem_barrier_all();
	for (int i = 0; i < LENGTH; i++)
		wrong += array[i] != pattern(i, (rank + ranks - 1) % ranks);
	printf("%s: rank %d of %d: sum %ld, %d bytes wrong\n",
	       sum == ADDITIONS && !wrong ? "OK" : "FAILED", rank, ranks, sum, wrong);
	shmem_finalize();
	return sum != ADDITIONS || wrong;
}
