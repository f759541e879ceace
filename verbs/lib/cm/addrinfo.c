/*
 * addrinfo.c - rdma_getaddrinfo: turns names and services into addresses, a port space and a queue pair
 * type. The C library's getaddrinfo does the look-up; its EAI_ codes are returned unchanged.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"

static int copy_address(struct sockaddr **to, socklen_t *to_length,
			const struct sockaddr *from, socklen_t length)
{
	*to = calloc(1, length);
	if (!*to)
		return EAI_MEMORY;
	memcpy(*to, from, length);
	*to_length = length;
	return 0;
}

static int copy_name(char **to, const char *from)
{
	if (!from)
		return 0;
	*to = strdup(from);
	return *to ? 0 : EAI_MEMORY;
}

/* Translates rdma_addrinfo hints into addrinfo hints. Returns 0 or an EAI_ code. */
static int to_lookup(const struct rdma_addrinfo *hints, struct addrinfo *lookup)
{
	bool datagrams = hints->ai_port_space == RDMA_PS_UDP ||
			 hints->ai_qp_type == IBV_QPT_UD;

	if (hints->ai_port_space == RDMA_PS_TCP && hints->ai_qp_type == IBV_QPT_UD)
		return EAI_SOCKTYPE; /* the man page's EAI_QPTYPE */
	lookup->ai_family = hints->ai_flags & RAI_FAMILY ? hints->ai_family : AF_UNSPEC;
	lookup->ai_socktype = datagrams ? SOCK_DGRAM : SOCK_STREAM;
	lookup->ai_protocol = datagrams ? IPPROTO_UDP : IPPROTO_TCP;
	if (hints->ai_flags & RAI_PASSIVE)
		lookup->ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST)
		lookup->ai_flags |= AI_NUMERICHOST;
	return 0;
}

static void choose_type(struct rdma_addrinfo *to, const struct rdma_addrinfo *hints,
			const struct addrinfo *found)
{
	bool datagrams = found->ai_socktype == SOCK_DGRAM;

	to->ai_qp_type = hints->ai_qp_type;
	if (!to->ai_qp_type)
		to->ai_qp_type = datagrams ? IBV_QPT_UD : IBV_QPT_RC;
	to->ai_port_space = hints->ai_port_space;
	if (!to->ai_port_space)
		to->ai_port_space = datagrams ? RDMA_PS_UDP : RDMA_PS_TCP;
}

/* Copies one address found to the result, as source or as destination. */
static int from_found(struct rdma_addrinfo *to, const struct rdma_addrinfo *hints,
		      const struct addrinfo *found)
{
	int error;

	to->ai_family = found->ai_family;
	choose_type(to, hints, found);
	if (hints->ai_flags & RAI_PASSIVE) {
		to->ai_flags = RAI_PASSIVE;
		error = copy_address(&to->ai_src_addr, &to->ai_src_len,
				     found->ai_addr, found->ai_addrlen);
		return error ? error : copy_name(&to->ai_src_canonname, found->ai_canonname);
	}
	error = copy_address(&to->ai_dst_addr, &to->ai_dst_len, found->ai_addr,
			     found->ai_addrlen);
	return error ? error : copy_name(&to->ai_dst_canonname, found->ai_canonname);
}

/* Returns whether a port of urdmad has addresses of this family. */
static bool is_ours(int family)
{
	struct urdma_client *client = urdma_client_get();

	for (uint32_t i = 0; client && i < urdma_client_devices(client); i++)
		if (urdma_device_info(client, i)->addr.family == family)
			return true;
	return false;
}

/* Prefers an address whose family one of urdmad's ports has, then IPv4, then the first address. */
static const struct addrinfo *choose(const struct addrinfo *found)
{
	const struct addrinfo *other = NULL;

	for (const struct addrinfo *a = found; a; a = a->ai_next) {
		if (is_ours(a->ai_family))
			return a;
		if (!other && a->ai_family == AF_INET)
			other = a;
	}
	return other ? other : found;
}

static int look_up(struct rdma_addrinfo *to, const char *node, const char *service,
		   const struct rdma_addrinfo *hints)
{
	struct addrinfo lookup = { 0 };
	struct addrinfo *found;
	int error = to_lookup(hints, &lookup);

	if (!error)
		error = getaddrinfo(node, service, &lookup, &found);
	if (error)
		return error;
	error = from_found(to, hints, choose(found));
	freeaddrinfo(found);
	return error;
}

/* Without a node name, all fields come from the hints. */
static int from_hints(struct rdma_addrinfo *to, const struct rdma_addrinfo *hints)
{
	to->ai_flags = hints->ai_flags;
	to->ai_family = hints->ai_family;
	to->ai_qp_type = hints->ai_qp_type;
	to->ai_port_space = hints->ai_port_space;
	if (!hints->ai_dst_len)
		return 0;
	return copy_address(&to->ai_dst_addr, &to->ai_dst_len, hints->ai_dst_addr,
			    hints->ai_dst_len);
}

static int fill(struct rdma_addrinfo *to, const char *node, const char *service,
		const struct rdma_addrinfo *hints)
{
	int error;

	if (node || service)
		error = look_up(to, node, service, hints);
	else
		error = from_hints(to, hints);
	if (!error && !to->ai_src_len && hints->ai_src_len)
		error = copy_address(&to->ai_src_addr, &to->ai_src_len,
				     hints->ai_src_addr, hints->ai_src_len);
	return error;
}

URDMA_EXPORT int rdma_getaddrinfo(const char *node, const char *service,
				  const struct rdma_addrinfo *hints,
				  struct rdma_addrinfo **res)
{
	static const struct rdma_addrinfo no_hints;
	struct rdma_addrinfo *made;
	int error;

	if (!res || (!node && !service && !hints))
		return urdma_fail(EINVAL);
	if (!urdma_client_get())
		return -1; /* librdmacm returns the same if there is no device */
	made = calloc(1, sizeof(*made));
	if (!made)
		return EAI_MEMORY;
	error = fill(made, node, service, hints ? hints : &no_hints);
	if (error) {
		rdma_freeaddrinfo(made);
		return error;
	}
	*res = made;
	return 0;
}

URDMA_EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
	}
}
