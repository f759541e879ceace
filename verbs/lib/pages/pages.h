/*
 * Registered memory as pages that a second process can map.
 *
 * Registering turns the private anonymous pages of [addr, addr+length) into
 * pages of one sparse memfd whose offset is the address, atomically against
 * every running thread. urdmad maps the memfd and places segments with a plain
 * copy. What can't be converted (stack, shared and file mappings, hugetlb, a
 * threaded process without userfaultfd) takes the fallback path: urdmad then
 * uses pread and pwrite on an fd of the client's /proc/self/mem. Of a shared
 * mapping the caller is told the file.
 *
 * The functions are thread safe, call no allocator, block every signal while
 * they work and never abort. They aren't async-signal-safe.
 */
#ifndef URDMA_PAGES_H
#define URDMA_PAGES_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* The memfd's length in bytes: it is sealed at this size, and every address is
 * an offset in it. User addresses end here unless a program asks mmap for higher
 * ones by a hint: x86-64 has 57 bits then, arm64 52. */
#if defined(__aarch64__)
#define URDMA_PAGES_ADDRESS_BITS 48
#else
#define URDMA_PAGES_ADDRESS_BITS 47
#endif
#define URDMA_PAGES_FILE_SIZE (UINT64_C(1) << URDMA_PAGES_ADDRESS_BITS)

enum urdma_path { URDMA_PATH_SHARED = 0, URDMA_PATH_FALLBACK = 1 };

/* flags of urdma_pages_register */
enum {
	URDMA_PAGES_WRITE = 1 /* urdmad will write: the range must be writable */
};

/* A file that the program itself maps shared: urdmad may map it, too. */
struct urdma_shared {
	uint64_t inode; /* 0: there is none */
	uint32_t major, minor;
	uint64_t offset;     /* of the region's first byte */
	uint64_t start, end; /* of the mapping that this byte lies in */
};

struct urdma_region {
	uint64_t addr, length; /* as registered, bytes */
	int path;              /* enum urdma_path */
	int file_id;           /* which memfd, -1 on the fallback path */
	uint64_t file_offset;  /* of addr in that memfd */
	const char *why;       /* fallback: the reason, static text; else NULL */
	struct urdma_shared shared; /* fallback: what all of the region maps */
};

/* Idempotent and cheap: no file, no descriptor until the first register. A
 * constructor calls it; a program that links statically may call it again. */
int urdma_pages_init(void);

/*
 * 0, or an errno: EINVAL for a length of 0 or a range that wraps, EFAULT where
 * the range has a hole, can't be read, or can't be written with
 * URDMA_PAGES_WRITE (what ibv_reg_mr answers). Never fails for want of a
 * conversion: out->path and out->why say which way it went.
 */
int urdma_pages_register(void *addr, size_t len, int flags,
                         struct urdma_region *out);

/*
 * 0, or EINVAL for a region that isn't registered. The last registration of a
 * page gives it back as private memory with its content; a page that the
 * program has unmapped meanwhile is only dropped from the memfd. But for
 * little, it stays in the memfd until the program unmaps or moves it, or forks
 * (keep.c): nobody else uses it.
 */
int urdma_pages_deregister(const struct urdma_region *r);

/* The memfd, owned by this part (dup it to keep it), or -1. Sealed with
 * F_SEAL_SHRINK, so a mapping of it can't be truncated away. */
int urdma_pages_file(int file_id);

/*
 * While a process with threads forks, pages that registrations cover in part
 * are private for a moment. A thread calls this between seeing a completion
 * and letting the program read what it announces, and between the program's
 * writing of what it posts and letting urdmad know; it returns when both sides
 * see the same memory. Else it costs a load. What urdmad places unannounced (an
 * RDMA Write that the program sees by polling memory) is seen late in such a
 * page; in one that a single registration covers it is never late.
 */
extern uint32_t urdma_pages_forking; /* the thread that forks, or 0 */
void urdma_pages_wait_fork(void);
static inline void urdma_pages_await_fork(void)
{
	if (__builtin_expect(__atomic_load_n(&urdma_pages_forking,
	                                     __ATOMIC_ACQUIRE) != 0, 0))
		urdma_pages_wait_fork();
}

#pragma GCC visibility pop
#endif
