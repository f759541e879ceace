/*
 * lock.h - the lock of a send queue, receive queue or completion queue.
 *
 * A thread that finds it taken sleeps on a futex at once. Many machines have two cores; spinning there
 * while the holder is preempted costs a scheduler tick. While the process has one thread, taking the lock
 * costs a load.
 */
#ifndef URDMA_LOCK_H
#define URDMA_LOCK_H

#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

/* 0: free. 1: held. 2: held, and threads may sleep. */
struct urdma_lock {
	uint32_t word;
};

static inline void urdma_lock_wait(struct urdma_lock *l)
{
	uint32_t seen = 1;

	do {
		if (seen == 2 ||
		    __atomic_compare_exchange_n(&l->word, &seen, 2, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) ||
		    seen == 2)
			syscall(SYS_futex, &l->word, FUTEX_WAIT_PRIVATE, 2, 0, 0, 0);
		seen = 0;
	} while (!__atomic_compare_exchange_n(&l->word, &seen, 2, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
}

/* Takes the lock even if the process has one thread: for a lock that is held while the program's own code
 * runs (ibv_wr_start, ibv_start_poll). Returns 1. */
static inline int urdma_lock_keep(struct urdma_lock *l)
{
	uint32_t seen = 0;

	if (!__atomic_compare_exchange_n(&l->word, &seen, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		urdma_lock_wait(l);
	return 1;
}

/* Returns whether the lock was taken; pass the result to urdma_lock_drop. In a process with one thread it
 * is not taken: glibc clears __libc_single_threaded only in pthread_create, and no function calls that
 * while it holds a lock taken this way. */
static inline int urdma_lock_take(struct urdma_lock *l)
{
	return __libc_single_threaded ? 0 : urdma_lock_keep(l);
}

static inline void urdma_lock_drop(struct urdma_lock *l, int taken)
{
	if (taken && __atomic_exchange_n(&l->word, 0, __ATOMIC_RELEASE) == 2)
		syscall(SYS_futex, &l->word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

#endif /* URDMA_LOCK_H */
