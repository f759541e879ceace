/*
 * Registered memory: which path urdmad takes to it. Nothing of it ever moves.
 *
 * Memory of the arena (alloc.c) lies in a memfd from its first byte on, at the
 * offset of its address, and urdmad maps that file: SHARED. Of a file that the
 * program maps shared the caller is told, for urdmad may map it, too. All else
 * takes the fallback path: urdmad reads and writes it through the client's
 * /proc/self/mem, so the kernel finds the pages wherever they are by then.
 *
 * The functions are thread safe and call no allocator. They aren't
 * async-signal-safe.
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
	uint64_t file_offset;  /* SHARED: of addr in the memfd */
	const char *why;       /* FALLBACK: the reason, static text; else NULL */
	struct urdma_shared shared; /* FALLBACK: what all of the region maps */
};

/* Idempotent and cheap: no file, no descriptor until something is allocated. A
 * constructor calls it; a program that links statically may call it again. */
int urdma_pages_init(void);

/*
 * 0, or an errno: EINVAL for a length of 0 or a range that wraps; EFAULT where
 * the range has a hole, can't be read (guard regions, and what lies behind the
 * end of a file, included), or can't be written with URDMA_PAGES_WRITE; ENOMEM
 * where the kernel has no memory for it: what ibv_reg_mr answers. There is
 * nothing to take back when the region is deregistered.
 */
int urdma_pages_register(void *addr, size_t len, int flags,
                         struct urdma_region *out);

/* The memfd, owned by this part (dup it to keep it), or -1. Sealed with
 * F_SEAL_SHRINK, so a mapping of it can't be truncated away. */
int urdma_pages_file(void);

#pragma GCC visibility pop
#endif
