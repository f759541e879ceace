/* names.c - addresses of datagram sockets and their peers, IPv4 and IPv6. */
#include <string.h>

#include "datagram.h"

static union rs_name ipv4_name(const void *address, in_port_t port)
{
	union rs_name name = { .four = { .sin_family = AF_INET, .sin_port = port } };

	memcpy(&name.four.sin_addr, address, 4);
	return name;
}

/* Returns whether the address is unique only on its link (RFC 4007 section 5). For other addresses a scope
 * id has no meaning (ipv6(7)). */
static bool has_scope(const struct in6_addr *address)
{
	return IN6_IS_ADDR_LINKLOCAL(address) || IN6_IS_ADDR_MC_LINKLOCAL(address);
}

static union rs_name ipv6_name(const struct in6_addr *address, in_port_t port, uint32_t scope)
{
	if (IN6_IS_ADDR_V4MAPPED(address))
		return ipv4_name(address->s6_addr + 12, port);
	return (union rs_name){ .six = { .sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = *address,
					 .sin6_scope_id = has_scope(address) ? scope : 0 } };
}

union rs_name rs_name_of(const struct sockaddr *from)
{
	const struct sockaddr_in6 *six = (const void *)from;
	const struct sockaddr_in *four = (const void *)from;

	if (from->sa_family == AF_INET6)
		return ipv6_name(&six->sin6_addr, six->sin6_port, six->sin6_scope_id);
	if (from->sa_family == AF_INET)
		return ipv4_name(&four->sin_addr, four->sin_port);
	return (union rs_name){ .any.sa_family = AF_UNSPEC };
}

union rs_name rs_name_of_gid(const union ibv_gid *gid, in_port_t port, const union rs_name *own)
{
	struct in6_addr address;

	memcpy(&address, gid->raw, sizeof(address));
	return ipv6_name(&address, port, own->any.sa_family == AF_INET6 ? own->six.sin6_scope_id : 0);
}

bool rs_name_is_loopback(const union rs_name *name)
{
	if (name->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&name->six.sin6_addr);
	return ntohl(name->four.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool rs_name_is_any(const union rs_name *name)
{
	if (name->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&name->six.sin6_addr);
	return name->four.sin_addr.s_addr == htonl(INADDR_ANY);
}

bool rs_name_equal(const union rs_name *a, const union rs_name *b)
{
	if (a->any.sa_family != b->any.sa_family || a->four.sin_port != b->four.sin_port)
		return false;
	if (a->any.sa_family != AF_INET6)
		return a->four.sin_addr.s_addr == b->four.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a->six.sin6_addr, &b->six.sin6_addr) && a->six.sin6_scope_id == b->six.sin6_scope_id;
}

uint32_t rs_name_hash(const union rs_name *name)
{
	uint32_t sum;

	if (name->any.sa_family != AF_INET6)
		return ntohl(name->four.sin_addr.s_addr) * 31 + ntohs(name->four.sin_port);
	sum = name->six.sin6_scope_id;
	for (int i = 0; i < 4; i++)
		sum = sum * 31 + ntohl(name->six.sin6_addr.s6_addr32[i]);
	return sum * 31 + ntohs(name->six.sin6_port);
}

int rs_name_read(const struct rs *rs, const struct sockaddr *from, socklen_t length, union rs_name *to)
{
	struct sockaddr_storage given;

	if (!rs_read_name(from, length, &given))
		return rs_fail(EINVAL);
	*to = rs_name_of((struct sockaddr *)&given);
	if (to->any.sa_family == AF_INET6 && rs->domain == AF_INET6)
		return 0;
	if (to->any.sa_family != AF_INET)
		return rs_fail(EAFNOSUPPORT);
	return rs->domain == AF_INET6 && rs->options.v6only ? rs_fail(ENETUNREACH) : 0;
}
