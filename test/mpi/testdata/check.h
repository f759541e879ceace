/* check.h - what each part of the MPI checks has: who it is, and how it fails. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stddef.h>

extern int rank, ranks;

/* Ends the whole job with a line that says where and what. */
#define CHECK(condition)                                                                        \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "FAILED: rank %d, %s:%d: %s\n", rank, __FILE__, __LINE__, #condition); \
			MPI_Abort(MPI_COMM_WORLD, 9);                                           \
		}                                                                               \
	} while (0)

/* A byte that depends on where it lies and which message it belongs to. */
void fill(unsigned char *at, size_t n, unsigned seed);
/* The first byte that is not as filled, or n. */
size_t differs(const unsigned char *at, size_t n, unsigned seed);

void point_to_point(void);
void flood(void);
void types(void);
void collectives(void);
void one_sided(void);
void threads(void);
void spawn(const char *self);
void spawned(MPI_Comm parent);

#endif /* CHECK_H */
