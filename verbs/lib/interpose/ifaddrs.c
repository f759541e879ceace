/*
 * ifaddrs.c - getifaddrs(3) with urdmad's ports added, because libfabric and others search it for
 * addresses of RDMA devices. Ports whose address the kernel also has are already in the list. Ours come
 * last, so that a program that uses the first address for its sockets gets one of the kernel's.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "../session/session.h"
#include "interpose.h"

struct port_address {
	struct ifaddrs entry;
	const void *owner; /* &ours: see is_ours */
	union {
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address, mask, broadcast;
	char name[64];
};

static const char ours;

/* Reading owner is safe for entries of libc, too: their addresses follow them in memory, and contain no
 * pointer of ours. */
static bool is_ours(const struct ifaddrs *entry)
{
	return ((const struct port_address *)entry)->owner == &ours;
}

bool urdma_same_address(const struct sockaddr *a, const struct urdma_abi_device *port)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;

	if (!a || a->sa_family != port->addr.family)
		return false;
	if (a->sa_family == AF_INET)
		return memcmp(&v4->sin_addr, port->addr.addr, sizeof(v4->sin_addr)) == 0;
	if (a->sa_family != AF_INET6 || memcmp(&v6->sin6_addr, port->addr.addr, sizeof(v6->sin6_addr)) != 0)
		return false;
	/* A link-local address may belong to another host on another link. */
	return !port->addr.scope_id || !v6->sin6_scope_id || port->addr.scope_id == v6->sin6_scope_id;
}

static bool held(const struct ifaddrs *list, const struct urdma_abi_device *port)
{
	for (; list; list = list->ifa_next)
		if (urdma_same_address(list->ifa_addr, port))
			return true;
	return false;
}

static void fill_v4(struct port_address *p, const struct urdma_abi_device *port)
{
	uint32_t bits = port->prefix_length, mask = bits ? htonl(~UINT32_C(0) << (32 - bits)) : 0;

	p->address.v4.sin_family = p->mask.v4.sin_family = p->broadcast.v4.sin_family = AF_INET;
	memcpy(&p->address.v4.sin_addr, port->addr.addr, sizeof(p->address.v4.sin_addr));
	p->mask.v4.sin_addr.s_addr = mask;
	p->broadcast.v4.sin_addr.s_addr = p->address.v4.sin_addr.s_addr | ~mask;
	p->entry.ifa_flags |= IFF_BROADCAST;
	p->entry.ifa_broadaddr = (struct sockaddr *)&p->broadcast;
}

static void fill_v6(struct port_address *p, const struct urdma_abi_device *port)
{
	p->address.v6.sin6_family = p->mask.v6.sin6_family = AF_INET6;
	p->address.v6.sin6_scope_id = port->addr.scope_id;
	memcpy(&p->address.v6.sin6_addr, port->addr.addr, sizeof(p->address.v6.sin6_addr));
	for (uint32_t i = 0; i < port->prefix_length && i < 128; i++)
		p->mask.v6.sin6_addr.s6_addr[i / 8] |= (uint8_t)(0x80 >> i % 8);
}

static struct ifaddrs *entry_of(const struct urdma_abi_device *port)
{
	struct port_address *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->owner = &ours;
	p->entry.ifa_flags = IFF_MULTICAST | IFF_UP | (port->link_up ? IFF_RUNNING : 0);
	memcpy(p->name, port->name, sizeof(p->name));
	p->name[sizeof(p->name) - 1] = '\0';
	p->entry.ifa_name = p->name;
	p->entry.ifa_addr = (struct sockaddr *)&p->address;
	p->entry.ifa_netmask = (struct sockaddr *)&p->mask;
	if (port->addr.family == AF_INET)
		fill_v4(p, port);
	else
		fill_v6(p, port);
	return &p->entry;
}

static void append(struct ifaddrs **list, struct ifaddrs *entry)
{
	while (*list)
		list = &(*list)->ifa_next;
	*list = entry;
}

EXPORT int getifaddrs(struct ifaddrs **list)
{
	const struct urdma_summary *seen;
	int status = REAL(getifaddrs)(list);

	seen = status == 0 ? urdma_summary() : NULL;
	for (uint32_t i = 0; seen && i < seen->devices; i++)
		if (!held(*list, &seen->info[i]))
			append(list, entry_of(&seen->info[i]));
	return status;
}

/* libc frees its entries together: those before our first one. */
EXPORT void freeifaddrs(struct ifaddrs *list)
{
	struct ifaddrs **at = &list, *entry;

	while (*at && !is_ours(*at))
		at = &(*at)->ifa_next;
	entry = *at;
	*at = NULL;
	while (entry) {
		struct ifaddrs *next = entry->ifa_next;

		free(entry);
		entry = next;
	}
	if (list)
		REAL(freeifaddrs)(list);
}
