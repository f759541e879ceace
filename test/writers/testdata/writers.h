/*
 * writers.h - "the other writer": memory that is written and read by other ways than the
 * program's own loads and stores, while RDMA has the same and neighbouring memory.
 *
 * A cell is one way of writing on one kind of memory. Its buffer is cut into lanes of two
 * parties in turn: one writes by that way (ways_*.c), the other registers, deregisters,
 * moves data by RDMA and forks at random (neighbour.c). Each checks every byte of its own.
 */
#ifndef WRITERS_H
#define WRITERS_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGE ((size_t)4096)
#define SIZE (32 * PAGE) /* of a buffer's lanes: --share-malloc takes 128 KiB and more */
#define MAX_LANES 32
#define VERSIONS 64

/* What was found wrong ends the cell, whichever process finds it. */
#define CHECK(good, ...)                                                                  \
	do {                                                                              \
		if (!(good))                                                              \
			wrong(__FILE__, __LINE__, __VA_ARGS__);                           \
	} while (0)
_Noreturn void wrong(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* What this kernel, user or file system lacks. */
_Noreturn void skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum kind_bits {
	PRIVATE = 1, /* mmap, anonymous */
	HEAP = 2,    /* malloc */
	STATIC = 4,
	ALIGNED = 512, /* posix_memalign, to pages */
	ARENA = 8,   /* urdma_alloc */
	SHARED = 16, /* mmap, anonymous and shared */
	MEMFD = 32,
	FILE_SHARED = 64, /* of a disk */
	FILE_PRIVATE = 128,
	HUGE_PAGES = 256, /* of hugetlbfs, private */
	COMMON = SHARED | MEMFD | FILE_SHARED, /* a child has the same; of all else it has a copy */
	WHOLE_PAGES = PRIVATE | ALIGNED | ARENA | COMMON | FILE_PRIVATE,
	ALL = 1023,
};

struct kind {
	const char *name;
	unsigned bit;
	char *(*make)(size_t size);
};
extern const struct kind kinds[];

struct lane {
	size_t at; /* in the buffer */
	uint32_t version;
};

struct end;
struct way {
	const char *name;
	unsigned kinds;
	bool whole;  /* it stores words whole: a child of fork(2) sees one version or the other */
	bool pages;  /* it writes whole pages, which a lane then is */
	bool holes;  /* at times a page is not there, so ibv_reg_mr may say EFAULT */
	bool anew;   /* memory that urdmad maps must be registered again after a write */
	bool pinned; /* it refers to pages while they are written; before Linux 6.3 a fork of private ones loses that (open(2)) */
	bool unforked; /* what it refers to stays with one of two processes after a fork (vmsplice(2)) */
	uint32_t period; /* pages hold the same bytes after so many lanes; 0: never */
	size_t room;     /* of the buffer; 0: SIZE */
	unsigned most;   /* lanes at a time; 0: all */
	bool helper;  /* it needs the process of process_start */
	void (*start)(void);
	/* put writes versions to lanes [first, first + n), after put_version has named them. */
	void (*put)(unsigned first, unsigned n);
	/* get reads the lanes by the same way and checks them. NULL: there is none. */
	void (*get)(unsigned first, unsigned n);
	/* refer has the kernel refer to a lane, changed is called after it was written by RDMA. */
	void (*refer)(unsigned lane);
	void (*changed)(unsigned lane);
	/* finish tries what may fail, at the end. */
	void (*finish)(struct end *e, const struct ibv_mr *mr);
	void (*alone)(void); /* instead of all that: the whole cell */
};
extern const struct way *const ways[];

struct cell {
	const struct way *way;
	const struct kind *kind;
	const char *dir; /* of a disk */
	char *at;        /* the buffer */
	size_t length;   /* of a lane */
	unsigned lanes;
	struct lane mine[MAX_LANES], theirs[MAX_LANES];
	int file; /* that the buffer is of, or -1 */
	bool fault;
	bool shared_with_urdmad; /* from its first byte, by the library */
	uint64_t seed;
	int64_t end; /* in milliseconds of now() */
	volatile bool stop;
	pthread_mutex_t hole; /* held while a page is not mapped at all */
	volatile unsigned writes, registrations, moves, forks;
};
extern struct cell cell;

void make_buffer(void); /* with its lanes at version 1 */
int64_t now(void);
uint64_t below(uint64_t *seed, uint64_t n);
char *lane_at(const struct lane *l);
uint32_t next_version(uint32_t version);

void pattern_fill(char *to, size_t at, size_t length, uint32_t version);
void pattern_check(const char *from, size_t at, size_t length, uint32_t version, const char *what);
void pattern_known(const char *from, size_t at, size_t length, const char *what); /* of any version */
void lanes_check(const struct lane *lanes, const char *what);

/* rdma.c: a queue pair that is connected to itself, and memory beside it that stays. */
struct end *end_new(uint64_t *seed);
void rdma_open(void);
struct ibv_mr *rdma_register(void *at, size_t length, int access); /* NULL: EFAULT */
void rdma_deregister(struct ibv_mr *mr);
void rdma_out(struct end *e, const struct lane *l, const struct ibv_mr *mr, uint64_t *seed);
void rdma_in(struct end *e, struct lane *l, const struct ibv_mr *mr, uint64_t *seed);

bool rdma_try_in(struct end *e, struct lane *l, const struct ibv_mr *mr);

void neighbour_run(void); /* neighbour.c, until cell.stop */
int fork_child(unsigned how); /* by how % 3: fork, _Fork, clone */

void process_start(void); /* ways_process.c */
void check_child(void);   /* that it has the writer's lanes as they are; likewise */

/* What several ways need (ways_calls.c). */
char *scratch(void); /* SIZE bytes, aligned to a page, that are never registered */
void store_lanes(unsigned first, unsigned n);
/* Calls see for each line of /proc/self/maps, or smaps, that belongs to the buffer. */
void each_line(const char *path, void (*see)(const char *line));

extern const struct way way_store, way_alias, way_read, way_readv, way_recv, way_vmsplice;
extern const struct way way_direct, way_aio, way_uring, way_uring_fixed;
extern const struct way way_process_vm, way_proc_mem, way_ptrace, way_clone_vm, way_vfork, way_fork, way_raw_fork, way_exec;
extern const struct way way_dontneed, way_free, way_remove, way_mremap, way_remap, way_protect, way_guard;
extern const struct way way_uffd_copy, way_uffd_zero, way_ksm, way_thp, way_mbind;
extern const struct way way_futex, way_said, way_maps, way_core;

#endif
