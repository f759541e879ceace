//go:build c_only
/*
 * A thread that takes completions or posts while pages covered in part are private
 * for a fork waits until they are shared again.
 *
 * Holding: the word is set, then every thread passes a barrier, then the first
 * page changes hands. A poster writes its data, then loads the word, then
 * publishes: if it loaded 0, its data was written before the barrier, so into
 * the shared page. A poller loads the ring's index, then the word, then reads
 * the data: if it loaded 0, urdmad had placed the data before the first page
 * was copied.
 */
#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>

#include "internal.h"
#include "kernel/sys.h"

/* Seconds. Nobody who forks waits for one who waits here, unless a program has
 * made the two one (a stream of its own that is flushed by posting, while
 * another thread flushes all streams): then this one goes on, late. */
enum { PATIENCE = 10 };

uint32_t urdma_pages_forking;

static uint32_t own_tid(void)
{
	return (uint32_t)sys6(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

static void barrier_of_all_threads(void)
{
	long r = sys6(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0, 0,
	              0, 0);
	if (!sys_failed(r))
		return;
	sys6(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0, 0,
	     0, 0);
	sys6(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0, 0, 0, 0);
}

void fork_hold(void)
{
	if (__atomic_load_n(&urdma_pages_forking, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&urdma_pages_forking, own_tid(), __ATOMIC_SEQ_CST);
	barrier_of_all_threads();
}

void fork_release(void)
{
	if (!__atomic_load_n(&urdma_pages_forking, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&urdma_pages_forking, 0, __ATOMIC_SEQ_CST);
	sys6(SYS_futex, (long)&urdma_pages_forking, FUTEX_WAKE_PRIVATE,
	     INT32_MAX, 0, 0, 0);
}

void urdma_pages_wait_fork(void)
{
	const struct { long s, ns; } second = { 1, 0 };
	uint32_t owner, self = own_tid();
	for (int waited = 0; waited < PATIENCE;) {
		owner = __atomic_load_n(&urdma_pages_forking, __ATOMIC_ACQUIRE);
		if (!owner || owner == self)
			return; /* handlers of the program's may post, too */
		long r = sys6(SYS_futex, (long)&urdma_pages_forking,
		              FUTEX_WAIT_PRIVATE, owner, (long)&second, 0, 0);
		waited += r == -ETIMEDOUT;
	}
}
