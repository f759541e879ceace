/* transport.h - what devices are shown as. What follows from it, urdmad says. */
#ifndef URDMA_TRANSPORT_H
#define URDMA_TRANSPORT_H

#include "internal.h"

#define URDMA_GIDS 1u  /* entries of a port's GID table */
#define URDMA_PKEYS 1u /* entries of a port's P_Key table */

/* False, with a line on stderr, if the device's address rules its transport out. */
bool urdma_transport_possible(const struct urdma_abi_device *device);

#endif /* URDMA_TRANSPORT_H */
