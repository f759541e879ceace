/*
 * netlink.c - sockets of NETLINK_RDMA, by which iproute2's rdma(8) asks the kernel for devices and objects. Here
 * such a socket is one connected to urdmad, which answers (urdmad/attach/nldev); the calls that treat a netlink
 * socket in a way of its own are implemented here.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "interpose.h"
#include "standin.h"

EXPORT int socket(int domain, int type, int protocol)
{
	struct urdma_abi_open_rdma_netlink request = {
		.header = { .type = URDMA_ABI_OPEN_RDMA_NETLINK, .length = sizeof(request) }
	};
	int before = errno, fd;

	if (domain != AF_NETLINK || protocol != NETLINK_RDMA)
		return REAL(socket)(domain, type, protocol);
	request.shown = urdma_shown_wish();
	fd = urdma_standin_open(URDMA_NETLINK, &request.header, type);
	if (fd >= 0 || errno != ENODEV)
		return fd;
	errno = before;
	return REAL(socket)(domain, type, protocol); /* the kernel's, as there is no urdmad */
}

/* Port ID 0 is the kernel's; libmnl and libnl compare it with the one in messages, where 0 is anybody's. */
static void name(struct sockaddr *addr, socklen_t *length)
{
	struct sockaddr_nl own = { .nl_family = AF_NETLINK };

	memcpy(addr, &own, *length < sizeof(own) ? *length : sizeof(own));
	*length = sizeof(own);
}

EXPORT int bind(int fd, __CONST_SOCKADDR_ARG addr, socklen_t length)
{
	return urdma_standin(URDMA_NETLINK, fd) ? 0 : REAL(bind)(fd, addr, length);
}

EXPORT int getsockname(int fd, __SOCKADDR_ARG addr, socklen_t *length)
{
	if (!urdma_standin(URDMA_NETLINK, fd))
		return REAL(getsockname)(fd, addr, length);
	name(addr.__sockaddr__, length);
	return 0;
}

EXPORT int setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
	if (level == SOL_NETLINK && urdma_standin(URDMA_NETLINK, fd))
		return 0; /* what it turns on is not needed for any answer */
	return REAL(setsockopt)(fd, level, option, value, length);
}

/* The real function returns the length of a name that need not fit into the program's buffer. */
EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	bool ours = urdma_standin(URDMA_NETLINK, fd);
	socklen_t room = ours ? message->msg_namelen : 0;
	ssize_t n = REAL(recvmsg)(fd, message, flags);

	if (ours && n >= 0 && message->msg_name) {
		message->msg_namelen = room;
		name(message->msg_name, &message->msg_namelen);
	}
	return n;
}
