/*
 * ah.c - address handles. An address handle is just the destination's address, which is copied into each
 * work request; urdmad finds the route and has no object for the handle.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "ah.h"

#define FIRST_MULTICAST_LID 0xC000u

/* Multicast: ff00::/8 (RFC 4291 section 2.7). */
static bool is_group(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xff;
}

static bool is_mapped(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

/* Reads an IPv4 group from a GID (docs/WIRE.md chapter 10). */
static int group_of_ipv4(const union ibv_gid *gid, uint8_t ipv4[4])
{
	memcpy(ipv4, gid->raw + 12, 4);
	if (gid->raw[10] == 0xff && gid->raw[11] == 0xff && (is_mapped(gid) || is_group(gid)) && ipv4[0] >> 4 == 0xe)
		return 0; /* ::ffff:a.b.c.d, ff..::ffff:a.b.c.d */
	ipv4[0] = 239;
	return is_group(gid) ? 0 : EINVAL;
}

int urdma_ah_group(const struct urdma_abi_device *info, const union ibv_gid *gid, uint8_t address[16])
{
	uint8_t ipv4[4];

	if (info->addr.family == AF_INET6) {
		memcpy(address, gid->raw, 16);
		return is_group(gid) ? 0 : EINVAL;
	}
	if (group_of_ipv4(gid, ipv4))
		return EINVAL;
	urdma_map_ipv4(address, ipv4);
	return 0;
}

/* Without a GID: the port's own address with its low 16 bits replaced by the LID. */
static int address_of_lid(const struct urdma_abi_device *info, uint16_t lid, uint8_t address[16])
{
	if (!lid || lid >= FIRST_MULTICAST_LID)
		return EINVAL;
	if (info->addr.family == AF_INET6)
		memcpy(address, info->addr.addr, 16);
	else
		urdma_map_ipv4(address, info->addr.addr);
	address[14] = (uint8_t)(lid >> 8);
	address[15] = (uint8_t)lid;
	return 0;
}

/* Returns whether the GID is the address of a single host. */
static bool is_host(const union ibv_gid *gid)
{
	static const uint8_t nothing[15];

	return !is_group(gid) && memcmp(gid->raw, nothing, sizeof(nothing)); /* neither :: nor ::1 */
}

int urdma_ah_address(const struct urdma_abi_device *info, const struct ibv_ah_attr *attr, uint8_t address[16])
{
	union ibv_gid there = attr->grh.dgid;
	const union ibv_gid *gid = &there;
	bool ipv6 = info->addr.family == AF_INET6;

	if (!ipv6)
		urdma_gid_map_link_local(&there);
	if (attr->is_global && !urdma_ah_group(info, gid, address))
		return 0;
	/* If there is a LID, an IPv6 GID is made from a GUID, as in InfiniBand, and is no address. */
	if (!(attr->is_global && !ipv6 && is_mapped(gid)) && !address_of_lid(info, attr->dlid, address))
		return 0;
	if (!attr->is_global || is_mapped(gid) == ipv6 || !is_host(gid))
		return EINVAL;
	memcpy(address, gid->raw, 16);
	return 0;
}

/* Fails with EINVAL if the path leads to no address, or with ENOMEM. Whether the destination exists is not
 * checked. */
URDMA_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	const struct urdma_abi_device *port = urdma_port_info(pd->context, attr->port_num ? attr->port_num : 1);
	struct urdma_ah *ah = calloc(1, sizeof(*ah));
	int status;

	if (!ah)
		return NULL;
	if (!port || (attr->is_global && attr->grh.sgid_index >= urdma_gids(port)))
		status = EINVAL;
	else
		status = urdma_ah_address(port, attr, ah->address);
	if (status) {
		free(ah);
		return urdma_null(status);
	}
	if (attr->is_global)
		ah->traffic_class = attr->grh.traffic_class;
	ah->ah.context = pd->context;
	ah->ah.pd = pd;
	ah->domain = urdma_domain_of(pd);
	__atomic_fetch_add(&ah->domain->users, 1, __ATOMIC_RELAXED);
	return &ah->ah;
}

URDMA_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	__atomic_fetch_sub(&urdma_ah_of(ah)->domain->users, 1, __ATOMIC_RELAXED);
	free(urdma_ah_of(ah));
	return 0;
}
