/* fork.c - ibv_fork_init. As on a kernel that copies registered memory when a
 * process forks, there is nothing to ask for: pages/ sees to it. */
#include "internal.h"

URDMA_EXPORT int ibv_fork_init(void)
{
	return 0;
}

URDMA_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

/* What libibverbs calls for its providers' memory. */
URDMA_EXPORT int ibv_dontfork_range(void *base, size_t size);
URDMA_EXPORT int ibv_dofork_range(void *base, size_t size);

int ibv_dontfork_range(void *base, size_t size)
{
	(void)base, (void)size;
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	(void)base, (void)size;
	return 0;
}
