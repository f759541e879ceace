/*
 * unsupported.c - public functions that urdmad does not support. Each returns the errno value of a
 * provider without the feature. All must be defined here, because the real libibverbs would misread our
 * objects. They use no arguments, so they are defined without them and verbs.h is not included.
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

/* Import of objects from another process. */
REFUSE_POINTER(ibv_import_device)
REFUSE_POINTER(ibv_import_pd)
REFUSE_POINTER(ibv_import_mr)
REFUSE_POINTER(ibv_import_dm)
ANSWER(ibv_unimport_pd, 0)
ANSWER(ibv_unimport_mr, 0)
ANSWER(ibv_unimport_dm, 0)

/* Drivers: a library that registers a provider is ignored. */
ANSWER(ibv_register_driver, 0)

/* Registered memory survives a fork (pages/), as with a kernel that copies it, so nothing has to be set
 * up. */
ANSWER(ibv_fork_init, 0)
ANSWER(ibv_is_fork_initialized, 2) /* IBV_FORK_UNNEEDED */
ANSWER(ibv_dontfork_range, 0)
ANSWER(ibv_dofork_range, 0)
