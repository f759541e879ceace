/* device.h - queries about a device, and the attribute of exported functions. */
#ifndef URDMA_DEVICE_H
#define URDMA_DEVICE_H

#include <infiniband/verbs.h>
#include <string.h>

/* Marks a function that programs may call. The library is built with hidden visibility; liburdma.map gives
 * the symbol its version. */
#define URDMA_EXPORT __attribute__((visibility("default")))

/* Maps an IPv4 address into IPv6 (RFC 4291 section 2.5.5.2). */
static inline void urdma_map_ipv4(uint8_t ipv6[16], const void *ipv4)
{
	memset(ipv6, 0, 10);
	ipv6[10] = ipv6[11] = 0xff;
	memcpy(ipv6 + 12, ipv4, 4);
}

/* port.c: a port, counted from 1, as it was when the process connected to urdmad; NULL if there is no
 * such port. */
const struct urdma_abi_device *urdma_port_info(const struct ibv_context *context, uint32_t port);

/* port.c: asks urdmad for a port's present attributes: the link may change, and with a kernel_interface the
 * addresses. Returns an errno value. */
struct urdma_context;
int urdma_port_ask(const struct urdma_context *c, uint32_t port, struct urdma_abi_device *now);

/* gid.c: the number of entries in a port's GID table. */
uint32_t urdma_gids(const struct urdma_abi_device *port);

/* gid.c: makes the link-local GID of an IPv4 address the IPv4-mapped one; other GIDs stay as they are. */
void urdma_gid_map_link_local(union ibv_gid *gid);

#endif /* URDMA_DEVICE_H */
