/*
 * What the files of this part share. Two locks:
 *   registry  one registration, deregistration or fork at a time
 *   table     the page table's entries; the interposed calls take this one
 *             alone, and they may come from inside an allocator that holds
 *             its own locks
 * Order: registry, then table. Nobody calls an allocator under either. Only a
 * holder of both adds or removes blocks; a holder of the table alone changes
 * entries. A fork holds the registry throughout, but not the table: an
 * allocator's own fork handler may be waiting for a thread that waits for it.
 */
#ifndef URDMA_PAGES_INTERNAL_H
#define URDMA_PAGES_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernel/kernel.h"
#include "pages.h"

#pragma GCC visibility push(hidden)

#define BLOCK (UINT64_C(1) << 21) /* one page table's reach: work goes by it */
#define BLOCK_PAGES 512u
#define FEW 4u /* pages: what is done for many doesn't pay for fewer */
#define FILES 4 /* memfds: more than one only while an address is reused */

/* An entry of the page table: count of registered ranges, and these. */
#define P_PRESENT (1u << 31) /* its address mapped this page when last seen */
#define P_SHADOW (1u << 30)  /* the original mapping waits at shadow() */
#define P_PARTIAL (1u << 29) /* some registration covers it only partly */
#define P_NOFORK (1u << 28)  /* a child doesn't get it */
#define P_HEAD (1u << 27)    /* kept a mapping of its own, see pages.c */
#define P_FORKED (1u << 26)  /* private for the moment of a fork */
#define P_IDLE (1u << 25)    /* no registration is left: stays all the same */
#define P_COUNT (P_IDLE - 1)

struct block {
	struct block *next; /* in its bucket, or in the free list */
	uint64_t start;     /* address = file offset of page[0] */
	void *snapshot;     /* during a fork: what the pages held before it */
	uint32_t file;
	uint32_t live; /* entries that aren't 0 */
	uint32_t page[BLOCK_PAGES];
};

enum window_kind {
	WINDOW_ALONE,     /* one thread: nobody to hold back */
	WINDOW_FULL,      /* userfaultfd stops threads and the kernel for them */
	WINDOW_USER_ONLY, /* ... threads only: their system calls see EFAULT */
	WINDOW_NONE       /* threads, and no userfaultfd */
};

/* How other threads are kept off a range while it changes hands. */
struct window {
	enum window_kind kind;
	int uffd; /* -1 unless FULL or USER_ONLY */
};

/* A stretch inside one block: [addr, addr+len) of file fd, page aligned. */
struct run {
	uint64_t addr, len;
	int fd;
	int pagemap; /* of anonymous memory: tells which pages exist; else -1 */
	bool zeros;  /* the file has its pages, as zeros */
	bool sparse; /* some of its pages may not exist */
};

struct state {
	pthread_mutex_t registry, table;
	uint64_t present; /* entries with P_PRESENT; read without lock: 0 means
	                   * that an interposed call has nothing to do */
	uint64_t kept;    /* P_PRESENT entries whose count is 0, not P_IDLE: they
	                   * could not be given back, which is retried later */
	uint64_t idle;    /* P_IDLE entries, see keep.c */
	uint64_t keep_least; /* bytes: smaller ranges are given back at once */
	uint64_t seen_least; /* bytes: smaller mappings of the program aren't noted */
	uint64_t emptied; /* blocks whose pages were unmapped since they were looked through */
	bool forks;       /* it did beside other threads, with idle pages */
	bool forking;     /* right now; read without lock */
	uint64_t changes; /* of entries */
	int fds[FILES];
	int spare; /* one of fds again, or -1: a descriptor to spend at the limit */
	uint64_t inode[FILES];
	uint32_t major, minor; /* of every memfd */
	bool checked[FILES];   /* since the lock was taken: fds[i] is still ours */
	bool none_locked;      /* likewise: no page of the process is (mlock) */
	bool usable; /* page size and so on are what we were built for */
	bool refused; /* URDMA_CONVERT=0 */
};
extern struct state urdma_pages_state;

/* Where the original mapping of an address waits while a memfd page stands in:
 * the other half of the address space, so neighbours stay neighbours and merge
 * again both there and on their return. */
static inline uint64_t shadow(uint64_t addr)
{
	return addr ^ (UINT64_C(1) << 46);
}

/* lock.c */
struct held {
	uint64_t mask;
};
void pages_lock_all(struct held *h);
void pages_unlock_all(struct held *h);
bool pages_lock_unless_forking(struct held *h);
void pages_lock_table(struct held *h);
void pages_unlock_table(struct held *h);

/* A range of whole pages, and how many registrations are of it. */
struct range {
	struct range *next; /* in its bucket, or in the free list */
	uint64_t first, last; /* [first, last) */
	int file;
	unsigned count;
};

/* ranges.c */
struct range *range_find(int file, uint64_t first, uint64_t last);
struct range *range_make(int file, uint64_t first, uint64_t last);
void range_drop(struct range *r);
void range_reset(void);

/* table.c */
void *own_memory(size_t bytes);
struct block *table_find(int file, uint64_t addr);
struct block *table_make(int file, uint64_t addr);
void table_drop_if_empty(struct block *b);
void table_reset(void);
void entry_set(struct block *b, unsigned i, uint32_t value);
bool table_free_in(int file, uint64_t start, uint64_t end);
typedef void (*block_fn)(struct block *b, unsigned from, unsigned to, void *arg);
void table_each(uint64_t start, uint64_t end, block_fn fn, void *arg);
bool block_run(const struct block *b, unsigned *from, unsigned *to,
               unsigned limit, uint32_t mask, uint32_t want);
static inline uint64_t block_addr(const struct block *b, unsigned i)
{
	return b->start + i * PAGE;
}

/* memfd.c */
int memfd_ready(int file, const char **why); /* the fd, made if need be */
int memfd_get(int file);
int pages_open_maps(struct maps *m); /* maps_open, also at the limit */
void pages_close_maps(struct maps *m);
void memfd_close_all(void);
void memfd_forget_all(void);

/* threads.c */
const char *threads_own(struct maps *m, const struct vma *v, uint64_t start,
                        uint64_t end, bool alone);

/* window.c */
void window_open(struct window *w);
void window_close(struct window *w);
long window_shut(const struct window *w, uint64_t addr, uint64_t len, bool file);
void window_cancel(const struct window *w, uint64_t addr, uint64_t len);
void window_wake(const struct window *w, uint64_t addr, uint64_t len);

/* arena.c */
bool arena_make(uint64_t bytes);
bool arena_has(uint64_t from, uint64_t to);
uint64_t arena_take(uint64_t len, uint64_t align);
uint64_t arena_length(uint64_t at);
void arena_give(uint64_t at);
uint64_t arena_room(uint64_t at);
void arena_grow(uint64_t at, uint64_t len);
bool arena_owns(uint64_t at);
void arena_inherit(void);

/* alloc.c */
void alloc_share_mapping(uint64_t start, uint64_t len, bool populate);

/* keep.c */
bool keep_none(void);
void keep_add(uint64_t start, uint64_t end);
void keep_remove(uint64_t start, uint64_t end);
bool keep_has(uint64_t start, uint64_t end);
void keep_reset(void);
bool keep_wanted(struct maps *m, uint64_t first, uint64_t last);
void keep_setup(void);

/* reserve.c */
bool reserve_make(void);
bool reserve_spend(void);

/* swap.c */
/*
 * Many whole blocks of which the memfd has nothing yet become huge pages there. Each
 * request for some waits until all processors have let go of pages: a moment, or
 * milliseconds where the machine is busy, so fewer are not worth it; and while they
 * wait to be used the memory is taken twice.
 */
#define LEAST_HUGE (4 * BLOCK)
#define MOST_HUGE (16 * BLOCK)
void swap_enter(const struct run *r);
bool map_shared_over(const struct run *r);
long swap_make_huge(int fd, uint64_t start, uint64_t len);
long swap_in(const struct window *w, const struct run *r, const void *before,
             bool *shadowed);
long swap_out(const struct window *w, const struct run *r, int prot,
              bool shadowed, void *snapshot);

/* walk.c */
struct walk {
	struct maps *maps;
	uint32_t mask, want; /* of entries */
	/* Entries [from, to) are alike and their memfd is mapped there by v. */
	void (*mapped)(struct walk *k, struct block *b, unsigned from,
	               unsigned to, const struct vma *v);
	/* ... or v is another mapping there, or NULL: nothing is. */
	void (*other)(struct walk *k, struct block *b, unsigned from,
	              unsigned to, const struct vma *v);
};
void walk_block(struct block *b, unsigned from, unsigned to, void *walk);
struct run run_of(const struct block *b, unsigned from, unsigned to);
int vma_file(const struct vma *v); /* which memfd, or -1 */
bool vma_is_identity(const struct vma *v);

/* release.c */
bool pages_pinned(void); /* some page of the process is */
void pages_gone(uint64_t start, uint64_t end);
void pages_release(const struct window *w, struct maps *m, struct block *b,
                   unsigned from, unsigned to);
bool pages_move_out(uint64_t start, uint64_t end);
void pages_retry_kept(const struct window *w, struct maps *m);
bool pages_stand_on(const struct block *b, unsigned from, unsigned to);
void pages_release_idle(const struct window *w, struct maps *m);

/* fork.c */
void pages_fork_setup(void);
void pages_fork_prepare(void);
void pages_fork_parent(void);
bool fork_child_copies(void); /* pages are inherited shared by this fork */
void fork_close_child_done(int side);
void fork_drop_snapshot(struct block *b, unsigned from, unsigned to, void *arg);
void fork_leave_alone(struct walk *k, struct block *b, unsigned from,
                      unsigned to, const struct vma *v);

/* fork_child.c */
void pages_fork_child(void);

/* fork_wait.c */
void fork_hold(void);
void fork_release(void);

#pragma GCC visibility pop
#endif
