/*
 * transport.c - the personality a port is shown with. The wire is the same
 * under each; node type, link layer, LID and GIDs differ.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "transport.h"

uint32_t urdma_transport_choose(const struct urdma_abi_device *device)
{
	const char *wish = getenv("URDMA_TRANSPORT");

	if (!wish || !*wish)
		return device->transport;
	if (strcmp(wish, "iwarp") == 0)
		return URDMA_ABI_TRANSPORT_IWARP;
	if (strcmp(wish, "ib") == 0)
		return URDMA_ABI_TRANSPORT_IB;
	if (strcmp(wish, "roce") == 0)
		return URDMA_ABI_TRANSPORT_ROCE;
	urdma_complain("URDMA_TRANSPORT is \"%s\"; expected iwarp, ib or roce", wish);
	return device->transport;
}

uint16_t urdma_transport_lid(const struct urdma_abi_device *device)
{
	return device->transport == URDMA_ABI_TRANSPORT_IB ? (uint16_t)(device->addr.addr[2] << 8 | device->addr.addr[3]) : 0;
}

/* Unicast LIDs are 0x0001 to 0xBFFF (InfiniBand Architecture Specification vol. 1, 4.1.3). */
bool urdma_transport_possible(const struct urdma_abi_device *device)
{
	uint16_t lid = urdma_transport_lid(device);

	if (device->transport != URDMA_ABI_TRANSPORT_IB || (lid >= 0x0001 && lid <= 0xbfff))
		return true;
	urdma_complain("%s cannot be shown as ib: the low 16 bits of its IPv4 address, 0x%04x, are no unicast LID "
		       "(0x0001-0xbfff)", device->name, lid);
	return false;
}

enum ibv_node_type urdma_transport_node_type(const struct urdma_abi_device *device)
{
	return device->transport == URDMA_ABI_TRANSPORT_IWARP ? IBV_NODE_RNIC : IBV_NODE_CA;
}

enum ibv_transport_type urdma_transport_type(const struct urdma_abi_device *device)
{
	return device->transport == URDMA_ABI_TRANSPORT_IWARP ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
}

uint8_t urdma_transport_link_layer(const struct urdma_abi_device *device)
{
	return device->transport == URDMA_ABI_TRANSPORT_IB ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
}

enum ibv_gid_type urdma_transport_gid_type(const struct urdma_abi_device *device)
{
	return device->transport == URDMA_ABI_TRANSPORT_ROCE ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
}

/*
 * iWARP ports show their MAC address and zeroes. InfiniBand ports show the
 * default subnet prefix and the port's GUID; RoCE ports the IPv4 address mapped
 * into IPv6 (RFC 4291, 2.5.5.2).
 */
int urdma_transport_gid(const struct urdma_abi_device *device, uint32_t index, union ibv_gid *gid)
{
	if (index >= URDMA_GIDS)
		return EINVAL;
	memset(gid, 0, sizeof(*gid));
	switch (device->transport) {
	case URDMA_ABI_TRANSPORT_IB:
		gid->raw[0] = 0xfe;
		gid->raw[1] = 0x80;
		memcpy(gid->raw + 8, &device->node_guid_be, 8);
		break;
	case URDMA_ABI_TRANSPORT_ROCE:
		gid->raw[10] = gid->raw[11] = 0xff;
		memcpy(gid->raw + 12, device->addr.addr, 4);
		break;
	default:
		memcpy(gid->raw, device->mac, sizeof(device->mac));
	}
	return 0;
}
