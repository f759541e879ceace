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
#define BATCH 32

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

/* Processes one message of n bytes. A connected socket has only its peer. */
static void take(struct rs *rs, const union rs_name *from, const uint8_t *bytes, size_t n)
{
	const struct rs_peer *c = rs->datagrams->connected;
	struct announcement a = { 0 };
	struct rs_peer *peer;

	memcpy(&a, bytes, n < sizeof(a) ? n : sizeof(a));
	if (a.length > n || ntohl(a.tag) != TAG || !(ntohl(a.qpn) & QPN_MASK) || (a.op != DATA && a.op != CONTROL) ||
	    !((a.version == 4 && a.length == 16) || (a.version == 6 && a.length == 28)))
		return;
	if (c && !rs_name_equal(&c->name, from))
		return;
	peer = a.op == DATA ? rs_peer_of(rs, from) : rs_peer_find(rs, from);
	if (peer)
		rs_peer_told(rs, peer, ntohl(a.qpn) & QPN_MASK, a.op == DATA);
	if (a.op == DATA && !rs->no_receive) {
		rs_message_arrived(rs, from, bytes + a.length, (uint32_t)n - a.length);
		rs_signal(rs);
	}
}

void rs_udp_take(struct rs *rs)
{
	uint8_t bytes[RS_LARGEST + 1];
	struct sockaddr_storage at;
	union rs_name from;
	socklen_t length;
	long n;

	for (int i = 0; i < BATCH && rs->datagrams->udp.fd >= 0; i++) {
		length = sizeof(at);
		n = syscall(SYS_recvfrom, rs->datagrams->udp.fd, bytes, sizeof(bytes), MSG_DONTWAIT, &at, &length);
		if (n < 0)
			return;
		from = rs_name_of((struct sockaddr *)&at);
		if (n <= (long)RS_LARGEST && from.any.sa_family != AF_UNSPEC)
			take(rs, &from, bytes, (size_t)n);
	}
}
