/*
 * unsupported.c - public functions of librdmacm that urdma refuses.
 *
 * They are defined so that none reaches the real library, which would misread
 * our objects. Multicast belongs to datagram queue pairs and rsockets keep
 * state of their own; each answers EOPNOTSUPP.
 */
#include <errno.h>
#include <rdma/rsocket.h>

#include "cm.h"

#define REFUSED(declaration)                                                   \
	URDMA_EXPORT declaration                                               \
	{                                                                      \
		return cm_fail(EOPNOTSUPP);                                    \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ---- multicast ------------------------------------------------------------- */

REFUSED(int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context))
REFUSED(int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
				   void *context))
REFUSED(int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr))

/* ---- rsockets -------------------------------------------------------------- */

REFUSED(int rsocket(int domain, int type, int protocol))
REFUSED(int rbind(int socket, const struct sockaddr *addr, socklen_t length))
REFUSED(int rlisten(int socket, int backlog))
REFUSED(int raccept(int socket, struct sockaddr *addr, socklen_t *length))
REFUSED(int rconnect(int socket, const struct sockaddr *addr, socklen_t length))
REFUSED(int rshutdown(int socket, int how))
REFUSED(int rclose(int socket))
REFUSED(ssize_t rrecv(int socket, void *buf, size_t len, int flags))
REFUSED(ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src,
			  socklen_t *length))
REFUSED(ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags))
REFUSED(ssize_t rsend(int socket, const void *buf, size_t len, int flags))
REFUSED(ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
			const struct sockaddr *dst, socklen_t length))
REFUSED(ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags))
REFUSED(ssize_t rread(int socket, void *buf, size_t count))
REFUSED(ssize_t rreadv(int socket, const struct iovec *iov, int count))
REFUSED(ssize_t rwrite(int socket, const void *buf, size_t count))
REFUSED(ssize_t rwritev(int socket, const struct iovec *iov, int count))
REFUSED(int rpoll(struct pollfd *fds, nfds_t count, int timeout))
REFUSED(int rselect(int count, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
		    struct timeval *timeout))
REFUSED(int rgetpeername(int socket, struct sockaddr *addr, socklen_t *length))
REFUSED(int rgetsockname(int socket, struct sockaddr *addr, socklen_t *length))
REFUSED(int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen))
REFUSED(int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen))
REFUSED(int rfcntl(int socket, int cmd, ...))
REFUSED(off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset))
REFUSED(int riounmap(int socket, void *buf, size_t len))
REFUSED(size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags))
