/* socket.c - creates, binds, shuts down and closes rsockets. */
#include <netinet/in.h>
#include <stdlib.h>

#include "rsockets.h"

/* ns: how long rclose waits until the peer's host has everything sent, unless SO_LINGER is set */
#define CLOSE_NS 10000000000ll

static struct rs *make(int domain, int type, enum rdma_port_space space)
{
	struct rs *rs = rs_new(domain, rs_defaults());

	if (!rs)
		return NULL;
	rs->options.nonblock = type & SOCK_NONBLOCK;
	if ((space == RDMA_PS_TCP || rs_datagram_make(rs) == 0) && rdma_create_id(rs->channel, &rs->id, rs, space) == 0 &&
	    rs_enter(rs) == 0)
		return rs;
	rs_free(rs);
	return NULL;
}

RS_EXPORT int rsocket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct rs *rs;

	if (domain != AF_INET && domain != AF_INET6)
		return rs_fail(EAFNOSUPPORT);
	if (kind != SOCK_STREAM && kind != SOCK_DGRAM)
		return rs_fail(ESOCKTNOSUPPORT);
	if (protocol && protocol != (kind == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP))
		return rs_fail(EPROTONOSUPPORT);
	rs_block_signals();
	rs = make(domain, type, kind == SOCK_STREAM ? RDMA_PS_TCP : RDMA_PS_UDP);
	rs_unblock_signals();
	return rs ? rs->fd : -1;
}

RS_EXPORT int rbind(int socket, const struct sockaddr *addr, socklen_t length)
{
	struct sockaddr_storage to;
	struct rs *rs = rs_take(socket);
	int result = -1;

	if (!rs)
		return -1;
	if ((rs->state != RS_IDLE && rs->state != RS_DATAGRAM) || !rs_read_name(addr, length, &to))
		errno = EINVAL;
	else if (rs->state == RS_DATAGRAM)
		result = rs->kind->bind(rs, (struct sockaddr *)&to);
	else
		result = rdma_bind_addr(rs->id, (struct sockaddr *)&to);
	if (result && errno == ENODEV)
		errno = EADDRNOTAVAIL; /* bind(2)'s errno value for an address that is not local */
	rs_drop(rs);
	return result;
}

/* A peer that sends to a socket that is shut down both ways must be told, or it waits for room for ever. */
static void shut_down(struct rs *rs, int how)
{
	bool sending = !rs->tx.ended, both;

	if (how != SHUT_WR)
		rs->no_receive = true;
	if (how != SHUT_RD)
		rs->tx.ended = true;
	both = rs->tx.ended && (rs->rx.ended || rs->no_receive);
	if (!rs->broken && both && !rs->disconnecting) {
		rs->disconnecting = true;
		rs_post_control(rs, RS_DISCONNECT);
	} else if (!rs->broken && sending && rs->tx.ended) {
		rs_post_control(rs, RS_SHUTDOWN);
	}
	rs_signal(rs);
}

RS_EXPORT int rshutdown(int socket, int how)
{
	struct rs *rs = rs_take(socket);
	int result = 0;

	if (!rs)
		return -1;
	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) {
		result = rs_fail(EINVAL);
	} else if (rs->state == RS_DATAGRAM) {
		result = rs->kind->shutdown(rs, how);
	} else if (rs->state == RS_LISTENING) {
		rs_break(rs, EINVAL); /* raccept returns, as accept does */
	} else if (rs->state != RS_CONNECTED) {
		result = rs_fail(ENOTCONN);
	} else {
		shut_down(rs, how);
	}
	rs_drop(rs);
	return result;
}

bool rs_all_sent(struct rs *rs)
{
	return rs->broken || !rs->tx.outstanding;
}

/* Ends the connection after everything sent was placed at the peer. */
static void disconnect(struct rs *rs)
{
	const struct linger *linger = &rs->options.linger;
	int64_t wait = linger->l_onoff ? linger->l_linger * 1000000000ll : CLOSE_NS;
	int error = 0;

	shut_down(rs, SHUT_RDWR);
	if (wait)
		wait += rs_now_ns();
	do
		error = rs_wait(rs, rs_all_sent, wait);
	while (error == EINTR);
	rdma_disconnect(rs->id);
}

static int close_socket(int socket)
{
	struct rs *rs;
	int before = errno;

	if (rs_inherited(socket)) {
		errno = before;
		return rs_raw_close(socket);
	}
	rs = rs_take(socket);
	if (!rs)
		return -1;
	if (rs->closed) { /* another thread has closed it meanwhile */
		rs_drop(rs);
		return rs_fail(EBADF);
	}
	if (rs->state == RS_CONNECTED)
		disconnect(rs);
	else if (rs->state == RS_DATAGRAM)
		rs->kind->finish(rs);
	rs->closed = true;
	rs_signal(rs);
	pthread_mutex_unlock(&rs->lock);
	if (rs->served || rs->state == RS_LISTENING)
		rs_stop_serving(rs);
	rs_leave_table(rs);
	rs_release(rs); /* the reference of rs_take */
	rs_release(rs); /* the reference of the table */
	rs_unblock_signals();
	errno = before;
	return 0;
}

/* Cancellation is disabled meanwhile: it would leave the socket half closed. */
RS_EXPORT int rclose(int socket)
{
	int result, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	result = close_socket(socket);
	pthread_setcancelstate(cancel, NULL);
	return result;
}
