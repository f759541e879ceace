/* gid.c - the GID table of a port (docs/VERBS.md). */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "context.h"

/* As RoCE adapters have it: each address once for RoCE v1 and once for v2, the link-local one first. */
#define URDMA_ROCE_GIDS 4u

uint32_t urdma_gids(const struct urdma_abi_device *port)
{
	return port->gid_type == IBV_GID_TYPE_ROCE_V2 ? URDMA_ROCE_GIDS : 1;
}

static enum ibv_gid_type type_of(const struct urdma_abi_device *port, uint32_t index)
{
	if (port->gid_type == IBV_GID_TYPE_ROCE_V2)
		return index % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
	return (enum ibv_gid_type)port->gid_type;
}

/* In front of an IPv4 address, the link-local form of it (RFC 5214 section 6.2), by which peers find it. */
static const uint8_t link_local[12] = { 0xfe, 0x80, [10] = 0x5e, 0xfe };

static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

void urdma_gid_map_link_local(union ibv_gid *gid)
{
	if (!memcmp(gid->raw, link_local, sizeof(link_local)))
		memcpy(gid->raw, mapped, sizeof(mapped));
}

static struct ibv_gid_entry entry_of(const struct urdma_abi_device *info, uint32_t port, uint32_t index)
{
	struct ibv_gid_entry entry = { .gid_index = index, .port_num = port, .gid_type = type_of(info, index) };

	memcpy(entry.gid.raw, info->gid, sizeof(info->gid));
	if (urdma_gids(info) > 1 && index < 2 && info->addr.family == AF_INET)
		memcpy(entry.gid.raw, link_local, sizeof(link_local));
	return entry;
}

/* Sets a port's present attributes or, if urdmad has ended, the earlier ones. */
static void present(const struct ibv_context *context, uint32_t port, struct urdma_abi_device *now)
{
	if (urdma_port_ask(urdma_context_of(context), port, now))
		*now = *urdma_port_info(context, port);
}

static int present_gid(const struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry)
{
	const struct urdma_abi_device *info = urdma_port_info(context, port);
	struct urdma_abi_device now;

	if (!info || index >= urdma_gids(info))
		return urdma_status(EINVAL);
	present(context, port, &now);
	*entry = entry_of(&now, port, index);
	return 0;
}

URDMA_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;

	if (index < 0 || present_gid(context, port, (uint32_t)index, &entry))
		return urdma_fail(EINVAL);
	*gid = entry.gid;
	return 0;
}

/* The caller's struct may be a later, longer one. */
static void put(const struct ibv_gid_entry *e, void *to, size_t size)
{
	memset(to, 0, size);
	memcpy(to, e, sizeof(*e));
}

URDMA_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
				   struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry e;

	if (flags || entry_size < sizeof(e) || present_gid(context, port, index, &e))
		return urdma_status(EINVAL);
	put(&e, entry, entry_size);
	return 0;
}

/* Returns the number of entries written, for all ports, or a negative errno value. */
URDMA_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
					  uint32_t flags, size_t entry_size)
{
	uint32_t ports = urdma_context_of(context)->info->num_ports, n = 0;

	if (flags || entry_size < sizeof(*entries))
		return -EINVAL;
	for (uint32_t port = 1; port <= ports; port++) {
		struct urdma_abi_device now;

		present(context, port, &now);
		for (uint32_t i = 0; i < urdma_gids(&now); i++, n++) {
			struct ibv_gid_entry e = entry_of(&now, port, i);

			if (n >= max)
				return -EINVAL;
			put(&e, (char *)entries + n * entry_size, entry_size);
		}
	}
	return (ssize_t)n;
}

/* Private to rdma-core, but ibv_devinfo imports it. 1: RoCE v2. 0: all others. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type);

URDMA_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type)
{
	const struct urdma_abi_device *info = urdma_port_info(context, port);

	if (!info || index >= urdma_gids(info))
		return urdma_fail(EINVAL);
	*type = type_of(info, index) == IBV_GID_TYPE_ROCE_V2;
	return 0;
}
