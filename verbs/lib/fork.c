/* fork.c - ibv_fork_init. Registered pages survive a fork either way (pages/);
 * asking for it keeps wholly registered pages out of the child. */
#include <stdlib.h>

#include "internal.h"
#include "pages/pages.h"

static int asked;

URDMA_EXPORT int ibv_fork_init(void)
{
	__atomic_store_n(&asked, 1, __ATOMIC_RELAXED);
	urdma_pages_fork_init();
	return 0;
}

URDMA_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return __atomic_load_n(&asked, __ATOMIC_RELAXED) ? IBV_FORK_ENABLED : IBV_FORK_UNNEEDED;
}

/* The environment variables that ask libibverbs for it. */
__attribute__((constructor)) static void from_environment(void)
{
	if (getenv("RDMAV_FORK_SAFE") || getenv("IBV_FORK_SAFE"))
		ibv_fork_init();
}

/* Marking ranges is pages/'s business, by registration. */
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
