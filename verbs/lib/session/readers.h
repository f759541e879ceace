/*
 * readers.h - threads that wait on the socket of an object while the program destroys it. The kernel lets
 * a thread sleep when its file is closed by another; an error would make programs that rely on this exit
 * with a failure. So such a thread sleeps here, too. The last reader that leaves frees the object's memory
 * and closes its descriptor.
 */
#ifndef URDMA_READERS_H
#define URDMA_READERS_H

#include <stdbool.h>
#include <stdint.h>

#define URDMA_ABANDONED (UINT32_C(1) << 31) /* the program has destroyed the object */

/* A single word instead of a lock, which a fork might find taken. */
struct urdma_readers {
	uint32_t word; /* number of readers, the destroying thread included, and URDMA_ABANDONED */
};

static inline void urdma_readers_enter(struct urdma_readers *r)
{
	__atomic_fetch_add(&r->word, 1, __ATOMIC_ACQ_REL);
}

/* Returns true for the last reader to leave a destroyed object, which must free it. */
static inline bool urdma_readers_leave(struct urdma_readers *r)
{
	return __atomic_sub_fetch(&r->word, 1, __ATOMIC_ACQ_REL) == URDMA_ABANDONED;
}

/* The destroying thread calls abandon before urdmad closes the socket, and then leave, or keep if the
 * object can't be destroyed. */
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

/* readers.c: called by a reader after it has left a destroyed object: sleeps until it is cancelled or a
 * signal handler interrupts it. Returns -1 with errno set. */
int urdma_readers_sleep(bool blocking);

#endif /* URDMA_READERS_H */
