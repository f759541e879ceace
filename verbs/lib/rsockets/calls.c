/* calls.c - rsend, rrecv and related calls, for both types of sockets. */
#include <sys/uio.h>

#include "rsockets.h"

/* Like send(2) on a stream: an address is ignored if the socket is connected. */
static ssize_t send_on(int socket, const struct iovec *iov, int count, int flags, const struct sockaddr *to,
	socklen_t length)
{
	struct rs *rs = rs_take(socket);
	ssize_t result;

	if (!rs)
		return -1;
	if (rs->kind)
		result = rs->kind->send(rs, iov, count, flags, to, length);
	else
		result = rs_send(rs, iov, count, flags);
	rs_drop(rs);
	return result;
}

/* A stream reports no source address. */
static ssize_t receive_on(int socket, const struct iovec *iov, int count, int flags, struct sockaddr *from,
	socklen_t *length,
			  size_t *all)
{
	struct rs *rs = rs_take(socket);
	ssize_t result;

	if (!rs)
		return -1;
	if (rs->kind)
		result = rs->kind->receive(rs, iov, count, flags, from, length, all);
	else
		result = rs_receive(rs, iov, count, flags);
	if (!rs->kind && result >= 0 && from && length)
		*length = 0;
	rs_drop(rs);
	return result;
}

RS_EXPORT ssize_t rsendto(int socket, const void *buf, size_t len, int flags, const struct sockaddr *dst,
			  socklen_t length)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return send_on(socket, &iov, 1, flags, dst, length);
}

RS_EXPORT ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	return rsendto(socket, buf, len, flags, NULL, 0);
}

RS_EXPORT ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags, struct sockaddr *src, socklen_t *length)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	size_t all;

	return receive_on(socket, &iov, 1, flags, src, length, &all);
}

RS_EXPORT ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	return rrecvfrom(socket, buf, len, flags, NULL, NULL);
}

RS_EXPORT ssize_t rwrite(int socket, const void *buf, size_t count) { return rsend(socket, buf, count, 0); }
RS_EXPORT ssize_t rread(int socket, void *buf, size_t count) { return rrecv(socket, buf, count, 0); }

RS_EXPORT ssize_t rwritev(int socket, const struct iovec *iov, int count)
{
	return send_on(socket, iov, count, 0, NULL, 0);
}

RS_EXPORT ssize_t rreadv(int socket, const struct iovec *iov, int count)
{
	size_t all;

	return receive_on(socket, iov, count, 0, NULL, NULL, &all);
}

RS_EXPORT ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	if (msg->msg_control && msg->msg_controllen)
		return rs_fail(EOPNOTSUPP);
	return send_on(socket, msg->msg_iov, (int)msg->msg_iovlen, flags, msg->msg_name, msg->msg_namelen);
}

RS_EXPORT ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	socklen_t length = msg->msg_name ? msg->msg_namelen : 0;
	size_t all = 0;
	ssize_t n = receive_on(socket, msg->msg_iov, (int)msg->msg_iovlen, flags, msg->msg_name, &length, &all);

	if (n >= 0) {
		msg->msg_flags = all > (size_t)rs_length(msg->msg_iov, (int)msg->msg_iovlen) ? MSG_TRUNC : 0;
		msg->msg_namelen = length;
		msg->msg_controllen = 0;
	}
	return n;
}
