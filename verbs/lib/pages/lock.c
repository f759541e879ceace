//go:build c_only
/* The two locks, taken with every signal blocked: a handler that ran in the
 * window of a conversion could touch a page that is in flight. */
#include "internal.h"
#include "kernel/sys.h"

struct state urdma_pages_state = {
	.registry = PTHREAD_MUTEX_INITIALIZER,
	.table = PTHREAD_MUTEX_INITIALIZER,
	.fds = { -1, -1, -1, -1 },
	.spare = -1,
	.keep_least = UINT64_C(64) << 10,
	.seen_least = UINT64_C(1) << 20,
};

enum { SIG_SET = 2 /* SIG_SETMASK */ };

static void block_signals(struct held *h)
{
	const uint64_t all = ~UINT64_C(0);
	sys_sigmask(SIG_SET, &all, &h->mask);
}

static void restore_signals(const struct held *h)
{
	sys_sigmask(SIG_SET, &h->mask, NULL);
}

static void take_table(void)
{
	struct state *s = &urdma_pages_state;
	pthread_mutex_lock(&s->table);
	for (int i = 0; i < FILES; i++)
		s->checked[i] = false;
	s->none_locked = false;
}

void pages_lock_all(struct held *h)
{
	block_signals(h);
	pthread_mutex_lock(&urdma_pages_state.registry);
	take_table();
}

/* For what an allocator may call, whose fork handlers may wait for this thread. False,
 * and nothing is locked: a fork is under way. */
bool pages_lock_unless_forking(struct held *h)
{
	const struct { long s, ns; } pause = { 0, 50 * 1000 };
	struct state *s = &urdma_pages_state;
	block_signals(h);
	while (pthread_mutex_trylock(&s->registry)) {
		if (__atomic_load_n(&s->forking, __ATOMIC_ACQUIRE)) {
			restore_signals(h);
			return false;
		}
		sys6(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
	}
	take_table();
	return true;
}

void pages_unlock_all(struct held *h)
{
	pthread_mutex_unlock(&urdma_pages_state.table);
	pthread_mutex_unlock(&urdma_pages_state.registry);
	restore_signals(h);
}

void pages_lock_table(struct held *h)
{
	block_signals(h);
	take_table();
}

void pages_unlock_table(struct held *h)
{
	pthread_mutex_unlock(&urdma_pages_state.table);
	restore_signals(h);
}
