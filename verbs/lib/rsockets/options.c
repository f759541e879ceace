/* options.c - rsetsockopt, rgetsockopt and rfcntl. */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "rsockets.h"

#define LEAST_RING 4096u
#define MOST_RING (1u << 30)
#define MOST_QUEUE 4095u
#define LEAST_QUEUE 2u

static uint32_t within(int value, uint32_t least, uint32_t most)
{
	if (value < 0 || (uint32_t)value < least)
		return least;
	return (uint32_t)value > most ? most : (uint32_t)value;
}

/* An option of rdma_cm's that the id may have as well. */
static int set_id_option(struct rs *rs, int option, bool *own, int value)
{
	if (rdma_set_option(rs->id, RDMA_OPTION_ID, option, &value, sizeof(value)))
		return -1;
	*own = value != 0;
	return 0;
}

static int set_socket(struct rs *rs, int optname, int value)
{
	struct rs_options *o = &rs->options;

	switch (optname) {
	case SO_REUSEADDR:
		return set_id_option(rs, RDMA_OPTION_ID_REUSEADDR, &o->reuse, value);
	case SO_RCVBUF: /* twice, as socket(7) has it */
		o->recv_bytes = within(value < 1 << 29 ? value * 2 : value, LEAST_RING, MOST_RING);
		return 0;
	case SO_SNDBUF:
		o->send_bytes = within(value < 1 << 29 ? value * 2 : value, LEAST_RING, MOST_RING);
		return 0;
	case SO_KEEPALIVE:
		o->keepalive = value != 0; /* urdmad finds dead peers without it */
		return 0;
	case SO_OOBINLINE:
		o->oob_inline = value != 0;
		return 0;
	default:
		return rs_fail(ENOPROTOOPT);
	}
}

static int set_tcp(struct rs_options *o, int optname, int value)
{
	int *kept = optname == TCP_KEEPIDLE ? &o->keep_idle : optname == TCP_KEEPINTVL ? &o->keep_interval : &o->keep_count;

	switch (optname) {
	case TCP_NODELAY: /* nothing is ever delayed */
		o->nodelay = value != 0;
		return 0;
	case TCP_MAXSEG: /* the path says it */
		return 0;
	case TCP_KEEPIDLE:
	case TCP_KEEPINTVL:
	case TCP_KEEPCNT:
		if (value <= 0)
			return rs_fail(EINVAL);
		*kept = value;
		return 0;
	default:
		return rs_fail(ENOPROTOOPT);
	}
}

static int set_rdma(struct rs *rs, int optname, int value)
{
	struct rs_options *o = &rs->options;

	switch (optname) {
	case RDMA_SQSIZE:
		o->sq_size = within(value, LEAST_QUEUE, MOST_QUEUE);
		return 0;
	case RDMA_RQSIZE:
		o->rq_size = within(value, LEAST_QUEUE, MOST_QUEUE);
		return 0;
	case RDMA_INLINE:
		o->inline_bytes = within(value, 0, 2048);
		return 0;
	case RDMA_IOMAPSIZE:
		o->iomaps = within(value, 0, 65535);
		return 0;
	default:
		return rs_fail(ENOPROTOOPT);
	}
}

/* A path record, for a connection that is still to be made. */
static int set_route(struct rs *rs, const void *value, socklen_t length)
{
	void *copy = malloc(length);

	if (!copy)
		return -1;
	memcpy(copy, value, length);
	free(rs->route);
	rs->route = copy;
	rs->route_bytes = length;
	return 0;
}

static int set_option(struct rs *rs, int level, int optname, const void *optval, socklen_t length)
{
	int value;

	if (level == SOL_SOCKET && optname == SO_LINGER) {
		if (length < sizeof(rs->options.linger))
			return rs_fail(EINVAL);
		memcpy(&rs->options.linger, optval, sizeof(rs->options.linger));
		return 0;
	}
	if (level == SOL_RDMA && rs->state != RS_IDLE && rs->state != RS_LISTENING && /* whose connections have it */
	    rs->state != RS_DATAGRAM)
		return rs_fail(EINVAL);
	if (level == SOL_RDMA && optname == RDMA_ROUTE)
		return set_route(rs, optval, length);
	if (length < sizeof(value))
		return rs_fail(EINVAL);
	memcpy(&value, optval, sizeof(value));
	switch (level) {
	case SOL_SOCKET:
		return set_socket(rs, optname, value);
	case IPPROTO_TCP:
		return set_tcp(&rs->options, optname, value);
	case IPPROTO_IPV6:
		if (optname == IPV6_V6ONLY)
			return set_id_option(rs, RDMA_OPTION_ID_AFONLY, &rs->options.v6only, value);
		return rs_fail(ENOPROTOOPT);
	case SOL_RDMA:
		return set_rdma(rs, optname, value);
	default:
		return rs_fail(ENOPROTOOPT);
	}
}

RS_EXPORT int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	struct rs *rs = rs_take(socket);
	int result;

	if (!rs)
		return -1;
	result = optval ? set_option(rs, level, optname, optval, optlen) : rs_fail(EFAULT);
	rs_drop(rs);
	return result;
}

static int take_error(struct rs *rs)
{
	int error;

	rs_progress(rs);
	rs_take_events(rs);
	error = rs->error;
	rs->error = 0;
	return error;
}

static int get_socket(struct rs *rs, int optname, int *value)
{
	const struct rs_options *o = &rs->options;

	switch (optname) {
	case SO_ERROR:
		*value = take_error(rs);
		return 0;
	case SO_REUSEADDR:
		*value = o->reuse;
		return 0;
	case SO_RCVBUF:
		*value = (int)o->recv_bytes;
		return 0;
	case SO_SNDBUF:
		*value = (int)o->send_bytes;
		return 0;
	case SO_KEEPALIVE:
		*value = o->keepalive;
		return 0;
	case SO_OOBINLINE:
		*value = o->oob_inline;
		return 0;
	case SO_TYPE:
		*value = rs->kind ? rs->kind->type : SOCK_STREAM;
		return 0;
	case SO_DOMAIN:
		*value = rs->domain;
		return 0;
	case SO_PROTOCOL:
		*value = rs->kind ? rs->kind->protocol : IPPROTO_TCP;
		return 0;
	case SO_ACCEPTCONN:
		*value = rs->state == RS_LISTENING;
		return 0;
	default:
		return rs_fail(ENOPROTOOPT);
	}
}

/* The path's MTU, as verbs counts it. */
static int max_segment(const struct rs *rs)
{
	struct ibv_port_attr port;

	if (rs->id->verbs && ibv_query_port(rs->id->verbs, rs->id->port_num, &port) == 0)
		return 128 << port.active_mtu;
	return 4096;
}

static int get_tcp(const struct rs *rs, int optname, int *value)
{
	switch (optname) {
	case TCP_NODELAY:
		*value = rs->options.nodelay;
		return 0;
	case TCP_MAXSEG:
		*value = max_segment(rs);
		return 0;
	case TCP_KEEPIDLE:
		*value = rs->options.keep_idle;
		return 0;
	case TCP_KEEPINTVL:
		*value = rs->options.keep_interval;
		return 0;
	case TCP_KEEPCNT:
		*value = rs->options.keep_count;
		return 0;
	default:
		return rs_fail(ENOPROTOOPT);
	}
}

static int get_rdma(const struct rs_options *o, int optname, int *value)
{
	const uint32_t values[] = { [RDMA_SQSIZE] = o->sq_size, [RDMA_RQSIZE] = o->rq_size,
				    [RDMA_INLINE] = o->inline_bytes, [RDMA_IOMAPSIZE] = o->iomaps };

	if (optname < 0 || optname > RDMA_IOMAPSIZE)
		return rs_fail(ENOPROTOOPT);
	*value = (int)values[optname];
	return 0;
}

/* What is longer than the caller's room is cut, as getsockopt(2) does. */
static int give(void *optval, socklen_t *optlen, const void *value, socklen_t length)
{
	if (*optlen > length)
		*optlen = length;
	memcpy(optval, value, *optlen);
	return 0;
}

static int get_option(struct rs *rs, int level, int optname, void *optval, socklen_t *optlen)
{
	int value, result;

	if (level == SOL_SOCKET && optname == SO_LINGER)
		return give(optval, optlen, &rs->options.linger, sizeof(rs->options.linger));
	if (level == SOL_RDMA && optname == RDMA_ROUTE)
		return rs->route ? give(optval, optlen, rs->route, rs->route_bytes) : rs_fail(ENODATA);
	if (level == SOL_SOCKET) {
		result = get_socket(rs, optname, &value);
	} else if (level == IPPROTO_TCP) {
		result = get_tcp(rs, optname, &value);
	} else if (level == IPPROTO_IPV6 && optname == IPV6_V6ONLY) {
		value = rs->options.v6only;
		result = 0;
	} else if (level == SOL_RDMA) {
		result = get_rdma(&rs->options, optname, &value);
	} else {
		result = rs_fail(ENOPROTOOPT);
	}
	return result ? -1 : give(optval, optlen, &value, sizeof(value));
}

RS_EXPORT int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	struct rs *rs = rs_take(socket);
	int result;

	if (!rs)
		return -1;
	result = optval && optlen ? get_option(rs, level, optname, optval, optlen) : rs_fail(EFAULT);
	rs_drop(rs);
	return result;
}

/* O_NONBLOCK is the socket's own: the descriptor below never blocks. */
static int control(struct rs *rs, int cmd, int value)
{
	switch (cmd) {
	case F_GETFL:
		return O_RDWR | (rs->options.nonblock ? O_NONBLOCK : 0);
	case F_SETFL:
		rs->options.nonblock = value & O_NONBLOCK;
		return 0;
	case F_GETFD:
	case F_SETFD:
		return fcntl(rs->fd, cmd, value);
	default:
		return rs_fail(EINVAL);
	}
}

RS_EXPORT int rfcntl(int socket, int cmd, ...)
{
	struct rs *rs = rs_take(socket);
	va_list arguments;
	int result, value = 0;

	if (!rs)
		return -1;
	if (cmd == F_SETFL || cmd == F_SETFD) {
		va_start(arguments, cmd);
		value = va_arg(arguments, int);
		va_end(arguments);
	}
	result = control(rs, cmd, value);
	rs_drop(rs);
	return result;
}
