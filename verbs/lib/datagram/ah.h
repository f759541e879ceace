/* ah.h - address handles. */
#ifndef URDMA_AH_H
#define URDMA_AH_H

#include "../datapath/objects.h"
#include "../device/context.h"

/*
 * The address that a path leads to (docs/WIRE.md chapter 9): that of the GID, or
 * the one whose low 16 bits the LID is. EINVAL if there is none.
 */
int urdma_ah_address(const struct urdma_abi_device *info, const struct ibv_ah_attr *attr, uint8_t address[16]);

/*
 * The group that a GID stands for on a port: itself, or an IPv4 group mapped into
 * IPv6, as the port's address is. EINVAL if it is none of a group.
 */
int urdma_ah_group(const struct urdma_abi_device *info, const union ibv_gid *gid, uint8_t address[16]);

#endif /* URDMA_AH_H */
