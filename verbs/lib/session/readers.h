/*
 * readers.h - threads that wait on the socket of an object which the program
 * destroys. The kernel leaves a thread asleep whose file is closed under it, and
 * an error would end programs that come to their end that way with a failure: so
 * does this. The object's memory and descriptor go with the last reader.
 */
#ifndef URDMA_READERS_H
#define URDMA_READERS_H

#include <stdbool.h>
#include <stdint.h>

#define URDMA_ABANDONED (UINT32_C(1) << 31) /* the program destroyed it */

/* One word, and no lock that a fork could find taken. */
struct urdma_readers {
	uint32_t word; /* how many, the destroyer included, and URDMA_ABANDONED */
};

static inline void urdma_readers_enter(struct urdma_readers *r)
{
	__atomic_fetch_add(&r->word, 1, __ATOMIC_ACQ_REL);
}

/* True for the last one to leave what was abandoned, which releases it. */
static inline bool urdma_readers_leave(struct urdma_readers *r)
{
	return __atomic_sub_fetch(&r->word, 1, __ATOMIC_ACQ_REL) == URDMA_ABANDONED;
}

/* The destroyer enters, before urdmad hangs up on the socket, and goes by leave
 * or, where it can't destroy, by keep. */
static inline void urdma_readers_abandon(struct urdma_readers *r)
{
	__atomic_fetch_add(&r->word, URDMA_ABANDONED + 1, __ATOMIC_ACQ_REL);
}

static inline void urdma_readers_keep(struct urdma_readers *r)
{
	__atomic_fetch_sub(&r->word, URDMA_ABANDONED + 1, __ATOMIC_ACQ_REL);
}

static inline bool urdma_readers_abandoned(const struct urdma_readers *r)
{
	return __atomic_load_n(&r->word, __ATOMIC_ACQUIRE) & URDMA_ABANDONED;
}

/* readers.c: what a reader of an abandoned socket does, having left: nothing,
 * until it is cancelled or a signal handler interrupts it. -1 and errno. */
int urdma_readers_sleep(bool blocking);

#endif /* URDMA_READERS_H */
