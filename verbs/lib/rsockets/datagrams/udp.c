/*
 * udp.c - UDP messages of the kernel by which sockets of rdma-core find each other's queue pairs. A message
 * has a header with the number of the sender's queue pair. DATA contains a message of the program, too, and
 * asks for CONTROL, which contains none. librspreload replaces the calls for sockets: here the kernel is
 * called directly.
 */
#include <arpa/inet.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "datagram.h"

#define TAG 0x55555555u
#define QPN_MASK 0xffffffu

enum { DATA = 0, CONTROL = 7 };

struct announcement { /* network byte order */
	uint32_t tag;
	uint8_t version, op, length, reserved; /* version and length: 4 and 16, or 6 and 28 */
	uint32_t qpn;
	uint8_t address[16];
};

static socklen_t size_of(const struct sockaddr_storage *at)
{
	return at->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Makes a socket and binds it; -1 with errno set on failure. */
static int bound(int family, const struct sockaddr_storage *at, const struct rs_options *o)
{
	int fd = (int)syscall(SYS_socket, family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -1;
	if (o && o->reuse)
		syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &o->reuse, sizeof(o->reuse));
	if (o && family == AF_INET6)
		syscall(SYS_setsockopt, fd, IPPROTO_IPV6, IPV6_V6ONLY, &o->v6only, sizeof(o->v6only));
	if (syscall(SYS_bind, fd, at, size_of(at)) == 0)
		return fd;
	error = errno;
	rs_raw_close(fd);
	return rs_fail(error);
}

/* Several hosts of a test may be one for the kernel, so a wildcard address whose port number is taken there is bound in
 * urdmad alone; sockets of rdma-core can't find that socket. */
int rs_udp_open(struct rs *rs, struct sockaddr_storage *at)
{
	union rs_name name = rs_name_of((struct sockaddr *)at);
	socklen_t length = sizeof(*at);
	int fd = bound(rs->domain, at, &rs->options);

	if (fd < 0)
		return errno == EADDRNOTAVAIL || (errno != EMFILE && name.any.sa_family != AF_UNSPEC && rs_name_is_any(&name)) ?
		       0 : -1;
	syscall(SYS_getsockname, fd, at, &length);
	rs->datagrams->udp = rs_file_of(fd);
	rs->second = fd;
	return 0;
}

void rs_udp_close(struct rs *rs)
{
	struct rs_file *udp = &rs->datagrams->udp;

	if (udp->fd >= 0 && rs_is_open(udp))
		rs_raw_close(udp->fd);
	udp->fd = rs->second = -1;
}

bool rs_udp_has(const struct rs *rs, const union rs_name *local)
{
	struct sockaddr_storage at = { 0 };
	int fd;

	if (rs->datagrams->udp.fd < 0 || local->any.sa_family == AF_UNSPEC)
		return false;
	memcpy(&at, local, sizeof(*local));
	((struct sockaddr_in *)&at)->sin_port = 0; /* IPv6's port number is at the same offset */
	fd = bound(local->any.sa_family, &at, NULL);
	if (fd >= 0)
		rs_raw_close(fd);
	return fd >= 0;
}

void rs_udp_send(struct rs *rs, const struct rs_peer *to, const struct rs_message *m)
{
	const struct rs_pair *pair = to->pair ? to->pair : to->announced;
	struct announcement a = { .tag = htonl(TAG), .version = 4, .op = m ? DATA : CONTROL, .length = 16,
				  .qpn = htonl(pair->qp->qp_num) };
	struct sockaddr_storage name;
	struct iovec parts[2] = { { .iov_base = &a } };
	struct msghdr msg = { .msg_name = &name, .msg_namelen = sizeof(name), .msg_iov = parts, .msg_iovlen = m ? 2 : 1 };

	if (rs->datagrams->udp.fd < 0)
		return;
	if (to->local.any.sa_family == AF_INET6) {
		a.version = 6;
		a.length = 28;
		memcpy(a.address, &to->local.six.sin6_addr, 16);
	} else {
		memcpy(a.address, &to->local.four.sin_addr, 4);
	}
	parts[0].iov_len = a.length;
	if (m)
		parts[1] = (struct iovec){ (void *)(uintptr_t)m->data, m->length };
	rs_write_name(rs, &to->name.any, (struct sockaddr *)&name, &msg.msg_namelen);
	syscall(SYS_sendmsg, rs->datagrams->udp.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int rs_udp_receive(struct rs *rs, struct rs_udp_message *m)
{
	struct announcement a = { 0 };
	struct sockaddr_storage at;
	socklen_t length = sizeof(at);
	long n;

	if (rs->datagrams->udp.fd < 0)
		return -1;
	n = syscall(SYS_recvfrom, rs->datagrams->udp.fd, m->buffer, sizeof(m->buffer), MSG_DONTWAIT, &at, &length);
	if (n < 0)
		return -1;
	memcpy(&a, m->buffer, n < (long)sizeof(a) ? (size_t)n : sizeof(a));
	m->from = rs_name_of((struct sockaddr *)&at);
	m->qpn = ntohl(a.qpn) & QPN_MASK;
	m->is_data = a.op == DATA;
	if (n > (long)RS_LARGEST || a.length > n || m->from.any.sa_family == AF_UNSPEC || ntohl(a.tag) != TAG || !m->qpn ||
	    (a.op != DATA && a.op != CONTROL) || !((a.version == 4 && a.length == 16) || (a.version == 6 && a.length == 28)))
		return 0;
	m->data = m->buffer + a.length;
	m->length = (uint32_t)n - a.length;
	return 1;
}
