/*
 * unsupported.c - public functions for what urdmad has not: each answers with
 * the errno a provider without the feature gives. None may be left to the real
 * libibverbs, which would misread our objects. Those that look at no argument
 * have none here, so verbs.h is not included.
 */
#include <errno.h>
#include <stddef.h>

#define PUBLIC __attribute__((visibility("default")))

#define REFUSE_POINTER(name)       \
	PUBLIC void *name(void);   \
	void *name(void)           \
	{                          \
		errno = EOPNOTSUPP; \
		return NULL;       \
	}

#define ANSWER(name, result)     \
	PUBLIC int name(void);   \
	int name(void)           \
	{                        \
		return result;   \
	}

PUBLIC int ibv_resolve_eth_l2_from_gid(void);

int ibv_resolve_eth_l2_from_gid(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

/* Objects of another process. */
REFUSE_POINTER(ibv_import_device)
REFUSE_POINTER(ibv_import_pd)
REFUSE_POINTER(ibv_import_mr)
REFUSE_POINTER(ibv_import_dm)
ANSWER(ibv_unimport_pd, 0)
ANSWER(ibv_unimport_mr, 0)
ANSWER(ibv_unimport_dm, 0)

/* Drivers: libraries that bring their own provider are ignored. */
ANSWER(ibv_register_driver, 0)

/* As on a kernel that copies registered memory when a process forks, there is nothing
 * to ask for: pages/ sees to it. */
ANSWER(ibv_fork_init, 0)
ANSWER(ibv_is_fork_initialized, 2) /* IBV_FORK_UNNEEDED */
ANSWER(ibv_dontfork_range, 0)
ANSWER(ibv_dofork_range, 0)
