/*
 * Declarations shared by the files of this folder. One lock guards the arena and its memfd. A thread that
 * holds it has all signals blocked, calls no function of libc that could take another lock, and never
 * waits. So an allocator may take it while it holds locks of its own, and a signal handler never finds it
 * held by its own thread. It is not held during a fork.
 */
#ifndef URDMA_PAGES_INTERNAL_H
#define URDMA_PAGES_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernel/kernel.h"
#include "pages.h"

#pragma GCC visibility push(hidden)

#define BLOCK (UINT64_C(1) << 21) /* size of a huge page */

static inline uint64_t page_up(uint64_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

/* memfd.c: the lock must be held, except for memfd_is and in a child */
int memfd_ready(void); /* returns the descriptor, created if necessary, or -errno */
int memfd_get(void);
bool memfd_is(uint64_t inode, uint32_t major, uint32_t minor);
void memfd_leave(void);

/* arena.c */
struct held {
	uint64_t mask;
};
void pages_block_signals(struct held *h);
void pages_restore_signals(const struct held *h);
void arena_lock(struct held *h);
void arena_unlock(const struct held *h);
/* With the lock held: */
bool arena_make(uint64_t bytes);
bool arena_is_shared(void);
uint64_t arena_take(uint64_t len, uint64_t align, bool *dirty);
void arena_give(uint64_t at);
bool arena_extend(uint64_t at, uint64_t len);
bool arena_make_private(uint64_t from, uint64_t to);
/* Without the lock: */
bool arena_has(uint64_t from, uint64_t to);
bool arena_owns(uint64_t from, uint64_t to);
uint64_t arena_length(uint64_t at);
long arena_zero(uint64_t at, uint64_t len);
/* For fork.c: called for parts of the own arena that are mapped from the memfd. */
typedef void (*piece_fn)(uint64_t from, uint64_t to);
bool arena_in_use(void);
void arena_each_piece(piece_fn fn);
void arena_each_used(uint64_t from, uint64_t to, piece_fn fn);
unsigned arena_begin_fork(void);
bool arena_end_fork(unsigned of);
void arena_inherit(void);

/* alloc.c */
void alloc_no_more(void);

/* fork.c */
void fork_prepare(void);
void fork_parent(void);
void fork_child(void);

#pragma GCC visibility pop
#endif
