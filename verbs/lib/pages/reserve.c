//go:build c_only
/*
 * A few mappings held in reserve. A process may have vm.max_map_count of them
 * (65,530); at the limit mremap(2) refuses, and pages could be converted but
 * never given back. So the reserve is made before the first conversion, spent
 * when giving back fails for want of mappings, and made again after.
 */
#include <sys/mman.h>

#include "internal.h"
#include "kernel/sys.h"

enum { RESERVED = 16 };

static uint64_t reserve; /* 0: there is none */

/* Neighbours differ in protection, so that they don't merge. */
static bool keep_apart(uint64_t at)
{
	for (unsigned i = 1; i < RESERVED; i += 2)
		if (sys_failed(sys_mprotect(at + i * PAGE, PAGE, PROT_READ)))
			return false;
	return true;
}

bool reserve_make(void)
{
	if (reserve)
		return true;
	long r = sys_mmap(0, RESERVED * PAGE, PROT_NONE,
	                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sys_failed(r))
		return false;
	if (keep_apart((uint64_t)r)) {
		reserve = (uint64_t)r;
		return true;
	}
	sys_munmap((uint64_t)r, RESERVED * PAGE);
	return false;
}

bool reserve_spend(void)
{
	if (!reserve)
		return false;
	sys_munmap(reserve, RESERVED * PAGE);
	reserve = 0;
	return true;
}
