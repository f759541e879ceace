/* ah.h - address handles. */
#ifndef URDMA_AH_H
#define URDMA_AH_H

#include "../datapath/objects.h"
#include "../device/context.h"

/*
 * Returns the destination address of a path (docs/WIRE.md chapter 9): the GID's, or the one whose low 16
 * bits are the LID. EINVAL if there is none.
 */
int urdma_ah_address(const struct urdma_abi_device *info, const struct ibv_ah_attr *attr, uint8_t address[16]);

/*
 * Returns the group that a GID stands for on a port: the GID itself, or an IPv4 group mapped into IPv6 if
 * the port's address is IPv4. EINVAL if the GID is no group.
 */
int urdma_ah_group(const struct urdma_abi_device *info, const union ibv_gid *gid, uint8_t address[16]);

#endif /* URDMA_AH_H */
