/* transport.h - a device's personality, see transport.c. */
#ifndef URDMA_TRANSPORT_H
#define URDMA_TRANSPORT_H

#include "internal.h"

#define URDMA_GIDS 1u  /* entries of a port's GID table */
#define URDMA_PKEYS 1u /* entries of a port's P_Key table */

/* False, with a line on stderr, if the device's address rules the personality out. */
bool urdma_transport_possible(const struct urdma_abi_device *device);
uint16_t urdma_transport_lid(const struct urdma_abi_device *device); /* 0 unless ib */
enum ibv_node_type urdma_transport_node_type(const struct urdma_abi_device *device);
enum ibv_transport_type urdma_transport_type(const struct urdma_abi_device *device);
uint8_t urdma_transport_link_layer(const struct urdma_abi_device *device);
enum ibv_gid_type urdma_transport_gid_type(const struct urdma_abi_device *device);
/* EINVAL past the end of the table. */
int urdma_transport_gid(const struct urdma_abi_device *device, uint32_t index, union ibv_gid *gid);

#endif /* URDMA_TRANSPORT_H */
