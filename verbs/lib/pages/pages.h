/*
 * Registered memory: decides by which path urdmad reaches it. Memory is never moved.
 *
 * Memory of the arena (alloc.c) is mapped from a memfd, at an offset equal to its address, and urdmad maps
 * the same file: SHARED. For memory of another file that the program maps shared, the file is reported to
 * the caller, because urdmad can map it, too. Everything else takes the fallback path: urdmad reads and
 * writes it through the client's /proc/self/mem, so the kernel finds the pages wherever they are.
 *
 * The functions are thread safe and call no allocator. They are not async-signal-safe.
 */
#ifndef URDMA_PAGES_H
#define URDMA_PAGES_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Length of the memfd in bytes. The file is sealed at this size, and every address is an offset in it.
 * User addresses end here unless a program requests higher ones from mmap: 57 bits on x86-64, 52 on arm64. */
#if defined(__aarch64__)
#define URDMA_PAGES_ADDRESS_BITS 48
#else
#define URDMA_PAGES_ADDRESS_BITS 47
#endif
#define URDMA_PAGES_FILE_SIZE (UINT64_C(1) << URDMA_PAGES_ADDRESS_BITS)

/* Values of enum urdma_abi_path. Only the first two result from urdma_pages_register. */
enum urdma_path { URDMA_PATH_SHARED = 0, URDMA_PATH_FALLBACK = 1, URDMA_PATH_ON_DEMAND = 4 };

/* flags of urdma_pages_register */
enum {
	URDMA_PAGES_WRITE = 1 /* urdmad will write: the range must be writable */
};

/* A file that the program maps shared and urdmad may map, too. */
struct urdma_shared {
	uint64_t inode; /* 0: there is no file */
	uint32_t major, minor;
	uint64_t offset;     /* offset in the file of the region's first byte */
	uint64_t start, end; /* the mapping that contains this byte */
};

struct urdma_region {
	uint64_t addr, length; /* as registered, in bytes */
	int path;              /* enum urdma_path */
	uint64_t file_offset;  /* SHARED: offset of addr in the memfd */
	const char *why;       /* FALLBACK: the reason, a constant string; else NULL */
	struct urdma_shared shared; /* FALLBACK: the file mapped by the whole region, if there is one */
};

/* Idempotent and cheap: creates no file before memory is allocated. A constructor calls it; a program that
 * links statically may call it again. */
int urdma_pages_init(void);

/*
 * Returns 0, or an errno value as ibv_reg_mr does. EINVAL: length 0, or the range wraps around. EFAULT:
 * the range has a hole, can't be read (guard regions and pages beyond the end of a file included), or with
 * URDMA_PAGES_WRITE can't be written. ENOMEM: the kernel has no memory for it. Nothing has to be undone
 * when the region is deregistered.
 */
int urdma_pages_register(void *addr, size_t len, int flags,
                         struct urdma_region *out);

/* For on-demand paging. Returns a new descriptor of /proc/self/maps through which urdmad can ask for the
 * mapping at an address, or -1 with errno: EOPNOTSUPP if the kernel is older than 6.11. */
int urdma_pages_mappings(void);

/* Makes pages present (ibv_advise_mr). Returns 0, or EFAULT if one is not mapped, or can't be read or, with
 * URDMA_PAGES_WRITE, written. */
int urdma_pages_prefetch(uint64_t addr, uint64_t len, int flags);

/* Returns the memfd, or -1. This part owns it: dup it to keep it. F_SEAL_SHRINK is set, so that a mapping
 * of it can't be truncated. */
int urdma_pages_file(void);

#pragma GCC visibility pop
#endif
