/* pages.c - memory registration without an arena, for builds with a sanitizer, whose runtime controls the
 * address space. */
#include <errno.h>
#include <stdlib.h>

#include "../../../pages/alloc.h"
#include "../../../pages/pages.h"

int urdma_pages_register(void *addr, size_t len, int flags, struct urdma_region *out)
{
	(void)flags;
	if ((uintptr_t)addr < 65536)
		return EFAULT;
	*out = (struct urdma_region){ .addr = (uintptr_t)addr, .length = len, .path = URDMA_PATH_FALLBACK,
				       .why = "sanitizer" };
	return 0;
}

int urdma_pages_file(void)
{
	return -1;
}

void *urdma_alloc(size_t bytes)
{
	return calloc(1, bytes);
}

void urdma_free(void *p)
{
	free(p);
}

int urdma_pages_mappings(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

int urdma_pages_prefetch(uint64_t addr, uint64_t len, int flags)
{
	(void)addr;
	(void)len;
	(void)flags;
	return EFAULT;
}
