/* names.c - addresses of sockets, in the family of the program's socket. */
#include <netinet/in.h>
#include <string.h>

#include "rsockets.h"

static size_t size_of(const struct sockaddr *name)
{
	return name->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* A socket of AF_INET6 shows IPv4 addresses as IPv4-mapped. */
static void as_ipv6(const struct sockaddr *from, struct sockaddr_in6 *to)
{
	const struct sockaddr_in *in = (const void *)from;

	*to = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = in->sin_port };
	if (in->sin_addr.s_addr == htonl(INADDR_ANY))
		return;
	to->sin6_addr.s6_addr[10] = to->sin6_addr.s6_addr[11] = 0xff;
	memcpy(&to->sin6_addr.s6_addr[12], &in->sin_addr, 4);
}

void rs_write_name(const struct rs *rs, const struct sockaddr *from, struct sockaddr *to, socklen_t *length)
{
	struct sockaddr_storage name = { .ss_family = (sa_family_t)rs->domain };
	socklen_t size;

	if (from->sa_family == AF_INET && rs->domain == AF_INET6)
		as_ipv6(from, (struct sockaddr_in6 *)&name);
	else if (from->sa_family)
		memcpy(&name, from, size_of(from));
	size = (socklen_t)size_of((struct sockaddr *)&name);
	memcpy(to, &name, *length < size ? *length : size);
	*length = size;
}

bool rs_read_name(const struct sockaddr *from, socklen_t length, struct sockaddr_storage *to)
{
	memset(to, 0, sizeof(*to));
	if (!from || length < sizeof(struct sockaddr_in) || length < size_of(from))
		return false;
	memcpy(to, from, size_of(from));
	return true;
}

RS_EXPORT int rgetsockname(int socket, struct sockaddr *addr, socklen_t *length)
{
	struct rs *rs = rs_take(socket);
	struct sockaddr_storage own = { 0 };

	if (!rs)
		return -1;
	memcpy(&own, rdma_get_local_addr(rs->id), size_of(rdma_get_local_addr(rs->id)));
	if (rs->state == RS_DATAGRAM)
		rs->kind->own_name(rs, &own);
	rs_write_name(rs, (struct sockaddr *)&own, addr, length);
	rs_drop(rs);
	return 0;
}

RS_EXPORT int rgetpeername(int socket, struct sockaddr *addr, socklen_t *length)
{
	struct rs *rs = rs_take(socket);
	const struct sockaddr *peer = NULL;
	int result = 0;

	if (!rs)
		return -1;
	if (rs->state == RS_DATAGRAM)
		peer = rs->kind->peer_name(rs);
	else if (rs->state == RS_CONNECTED)
		peer = rdma_get_peer_addr(rs->id);
	if (peer)
		rs_write_name(rs, peer, addr, length);
	else
		result = rs_fail(ENOTCONN);
	rs_drop(rs);
	return result;
}
