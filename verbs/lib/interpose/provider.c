/*
 * provider.c - what rdma-core's drivers ask of libibverbs besides its public
 * functions. Programs link with a driver's library for its own functions (perftest
 * and UCX with libmlx5), and where this library stands in libibverbs' place such a
 * library loads only if all of those symbols are here. A driver announces itself
 * when it is loaded and is never asked for a device, so it calls nothing else.
 *
 * Which symbols those are depends on the rdma-core of the machine: private.sh
 * takes them from it and gives each of them one of these two.
 */
#include <errno.h>
#include <stdint.h>

#include "interpose.h"

/* Of default visibility, which what private.sh defines by them takes over;
 * liburdma.map keeps these two names themselves inside. */
EXPORT int urdma_provider_call(void);
EXPORT extern uint64_t urdma_provider_data;

int urdma_provider_call(void)
{
	return EOPNOTSUPP;
}

uint64_t urdma_provider_data;
