/*
 * provider.c - symbols of libibverbs that rdma-core's drivers need besides its public functions. Some
 * programs link with a driver's library for its own functions (perftest and UCX with libmlx5), and such a
 * library loads only if all these symbols exist. When loaded, a driver only registers itself; it is never
 * asked for a device, so it calls no other function.
 *
 * The list of symbols depends on the machine's rdma-core: private.sh reads it there and makes each symbol
 * an alias of one of these two.
 */
#include <errno.h>
#include <stdint.h>

#include "interpose.h"

/* Default visibility, which the aliases from private.sh inherit; liburdma.map does not export these two
 * names themselves. */
EXPORT int urdma_provider_call(void);
EXPORT extern uint64_t urdma_provider_data;

int urdma_provider_call(void)
{
	return EOPNOTSUPP;
}

uint64_t urdma_provider_data;
