/* pages.c - memory registration without conversion, for the builds under a
 * sanitizer, whose runtime owns the address space. */
#include <errno.h>

#include "../../../pages/pages.h"

int urdma_pages_register(void *addr, size_t len, int flags, struct urdma_region *out)
{
	(void)flags;
	if ((uintptr_t)addr < 65536)
		return EFAULT;
	*out = (struct urdma_region){ .addr = (uintptr_t)addr, .length = len, .path = URDMA_PATH_FALLBACK, .file_id = -1,
				      .why = "sanitizer" };
	return 0;
}

int urdma_pages_deregister(const struct urdma_region *region)
{
	(void)region;
	return 0;
}

int urdma_pages_file(int file_id)
{
	(void)file_id;
	return -1;
}

uint32_t urdma_pages_forking;

void urdma_pages_wait_fork(void)
{
}
