/*
 * address.c - addresses of ids: conversion from and to sockaddr, binding, and resolution of addresses and
 * routes.
 *
 * IPv4-mapped IPv6 addresses are treated as IPv4 and written back in the form in which the program gave
 * them. urdmad decides to which port :: and ::1 are bound and which link a scope id names.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "cm.h"

static void read_ipv6(const struct sockaddr_in6 *from, struct urdma_abi_addr *to)
{
	const uint8_t *bytes = from->sin6_addr.s6_addr;

	to->port_be = from->sin6_port;
	if (IN6_IS_ADDR_V4MAPPED(&from->sin6_addr)) {
		to->family = AF_INET;
		memcpy(to->addr, bytes + 12, 4);
		return;
	}
	to->family = AF_INET6;
	to->scope_id = from->sin6_scope_id;
	memcpy(to->addr, bytes, sizeof(to->addr));
}

int cm_address_read(const struct sockaddr *from, struct urdma_abi_addr *to)
{
	const struct sockaddr_in *in = (const void *)from;

	memset(to, 0, sizeof(*to));
	if (!from)
		return EINVAL;
	switch (from->sa_family) {
	case AF_INET:
		to->family = AF_INET;
		memcpy(to->addr, &in->sin_addr, 4);
		to->port_be = in->sin_port;
		return 0;
	case AF_INET6:
		read_ipv6((const void *)from, to);
		return 0;
	default:
		return EAFNOSUPPORT;
	}
}

void cm_address_write(const struct urdma_abi_addr *from, struct sockaddr *to)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = from->port_be };
	struct sockaddr_in6 in6 = {
		.sin6_family = AF_INET6,
		.sin6_port = from->port_be,
		.sin6_scope_id = from->scope_id,
	};

	if (from->family == AF_INET6) {
		memcpy(&in6.sin6_addr, from->addr, sizeof(in6.sin6_addr));
		memcpy(to, &in6, sizeof(in6));
		return;
	}
	memcpy(&in.sin_addr, from->addr, sizeof(in.sin_addr));
	memcpy(to, &in, sizeof(in));
}

void cm_address_gid(const struct urdma_abi_addr *from, uint8_t gid[16])
{
	if (from->family == AF_INET6)
		memcpy(gid, from->addr, sizeof(from->addr));
	else
		urdma_map_ipv4(gid, from->addr);
}

void cm_address_local(struct cm_id *id, const struct urdma_abi_addr *local)
{
	struct urdma_abi_addr mapped = { .family = AF_INET6, .port_be = local->port_be };

	if (id->ipv6 && local->family == AF_INET) {
		cm_address_gid(local, mapped.addr);
		local = &mapped;
	}
	cm_address_write(local, &id->public.route.addr.src_addr);
}

int cm_address_bound(struct cm_id *id, const struct urdma_abi_cm_bound *bound)
{
	cm_address_local(id, &bound->local);
	return cm_id_attach(id, bound->device);
}

URDMA_EXPORT int rdma_bind_addr(struct rdma_cm_id *public, struct sockaddr *addr)
{
	struct cm_id *id = cm_id_of(public);
	struct urdma_abi_cm_bind request = { .id = id->handle };
	struct urdma_abi_cm_bound bound;
	int error = cm_address_read(addr, &request.addr);

	if (!error)
		error = URDMA_ASK(id->client, URDMA_ABI_CM_BIND, &request, &bound);
	if (error)
		return urdma_fail(error);
	id->ipv6 = addr->sa_family == AF_INET6;
	return cm_result(cm_address_bound(id, &bound));
}

URDMA_EXPORT int rdma_resolve_addr(struct rdma_cm_id *public,
				   struct sockaddr *src, struct sockaddr *dst,
				   int timeout_ms)
{
	struct cm_id *id = cm_id_of(public);
	struct urdma_abi_cm_resolve_addr request = {
		.id = id->handle,
		.timeout_ms = timeout_ms > 0 ? (uint32_t)timeout_ms : 0,
	};
	struct urdma_abi_cm_bound bound;
	int error = cm_address_read(dst, &request.dst);

	if (!error && src)
		error = cm_address_read(src, &request.src);
	if (error)
		return urdma_fail(error);
	id->ipv6 = dst->sa_family == AF_INET6;
	memcpy(&public->route.addr.dst_addr, dst, id->ipv6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	/* The source address and the device are set when the event is read: another thread may read it before
	 * this call returns. */
	error = URDMA_ASK(id->client, URDMA_ABI_CM_RESOLVE_ADDR, &request, &bound);
	return cm_complete(id, error);
}

URDMA_EXPORT int rdma_resolve_route(struct rdma_cm_id *public, int timeout_ms)
{
	struct cm_id *id = cm_id_of(public);
	int error = cm_id_call(id, URDMA_ABI_CM_RESOLVE_ROUTE,
			       timeout_ms > 0 ? (uint32_t)timeout_ms : 0);

	return cm_complete(id, error);
}

static __be16 port_of(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)addr)->sin_port;
	if (addr->sa_family == AF_INET6)
		return ((const struct sockaddr_in6 *)(const void *)addr)->sin6_port;
	return 0;
}

URDMA_EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.src_addr);
}

URDMA_EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_addr);
}
