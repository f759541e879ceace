/* options.c - rsetsockopt, rgetsockopt and rfcntl. */
#include <fcntl.h>
#include <limits.h>
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

/* Options that are stored as a number in struct rs_options. */
static const struct number {
	int level, name;
	size_t at;
	uint32_t least, most; /* least 0 and most 1: a flag, which any value but 0 sets; other values are clamped, */
	bool refuses;         /* or refused if this is set */
	int id_option;        /* the rdma_cm option to set on the id as well; 0: none */
	bool keepalive;
} numbers[] = {
#define KEEP(l, n, field, low, high) .level = l, .name = n, .at = offsetof(struct rs_options, field), .least = low, \
	.most = high
	{ KEEP(SOL_SOCKET, SO_REUSEADDR, reuse, 0, 1), .id_option = RDMA_OPTION_ID_REUSEADDR },
	{ KEEP(SOL_SOCKET, SO_RCVBUF, recv_bytes, LEAST_RING, MOST_RING) },
	{ KEEP(SOL_SOCKET, SO_SNDBUF, send_bytes, LEAST_RING, MOST_RING) },
	{ KEEP(SOL_SOCKET, SO_KEEPALIVE, keepalive, 0, 1), .keepalive = true },
	{ KEEP(SOL_SOCKET, SO_OOBINLINE, oob_inline, 0, 1) },
	{ KEEP(IPPROTO_TCP, TCP_NODELAY, nodelay, 0, 1) },   /* no effect: data is never delayed */
	{ KEEP(IPPROTO_TCP, TCP_KEEPIDLE, keep_idle, 1, INT_MAX), .refuses = true, .keepalive = true },
	{ KEEP(IPPROTO_TCP, TCP_KEEPINTVL, keep_interval, 1, INT_MAX), .refuses = true },
	{ KEEP(IPPROTO_TCP, TCP_KEEPCNT, keep_count, 1, INT_MAX), .refuses = true },
	{ KEEP(IPPROTO_IPV6, IPV6_V6ONLY, v6only, 0, 1), .id_option = RDMA_OPTION_ID_AFONLY },
	{ KEEP(SOL_RDMA, RDMA_SQSIZE, sq_size, LEAST_QUEUE, MOST_QUEUE) },
	{ KEEP(SOL_RDMA, RDMA_RQSIZE, rq_size, LEAST_QUEUE, MOST_QUEUE) },
	{ KEEP(SOL_RDMA, RDMA_INLINE, inline_bytes, 0, 2048) },
	{ KEEP(SOL_RDMA, RDMA_IOMAPSIZE, iomaps, 0, 65535) },
};

static const struct number *number_of(int level, int name)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].level == level && numbers[i].name == name)
			return &numbers[i];
	return NULL;
}

static uint32_t *kept(struct rs *rs, const struct number *n)
{
	return (uint32_t *)(void *)((uint8_t *)&rs->options + n->at);
}

static uint32_t within(int value, const struct number *n)
{
	if (n->most == 1)
		return value != 0;
	if (value < 0 || (uint32_t)value < n->least)
		return n->least;
	return (uint32_t)value > n->most ? n->most : (uint32_t)value;
}

static int set_number(struct rs *rs, const struct number *n, int value)
{
	if (n->refuses && within(value, n) != (uint32_t)value)
		return rs_fail(EINVAL);
	if (n->id_option && rdma_set_option(rs->id, RDMA_OPTION_ID, n->id_option, &value, sizeof(value)))
		return -1;
	if ((n->name == SO_RCVBUF || n->name == SO_SNDBUF) && n->level == SOL_SOCKET && value < 1 << 29)
		value *= 2; /* as in socket(7) */
	*kept(rs, n) = within(value, n);
	return n->keepalive ? rs_set_keepalive(rs) : 0;
}

/* Sets a path record for a connection that is not yet made. */
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

static int set_tos(struct rs *rs, int value)
{
	uint8_t tos = (uint8_t)value;

	if (rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)))
		return -1;
	rs->options.tos = tos;
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
	/* already connected: the option no longer has an effect */
	if (level == SOL_RDMA && rs->state != RS_IDLE && rs->state != RS_LISTENING &&
	    rs->state != RS_DATAGRAM)
		return rs_fail(EINVAL);
	if (level == SOL_RDMA && optname == RDMA_ROUTE)
		return set_route(rs, optval, length);
	if (length < sizeof(value))
		return rs_fail(EINVAL);
	memcpy(&value, optval, sizeof(value));
	if (number_of(level, optname))
		return set_number(rs, number_of(level, optname), value);
	if (level == IPPROTO_IP && optname == IP_TOS)
		return set_tos(rs, value);
	return level == IPPROTO_TCP && optname == TCP_MAXSEG ? 0 : rs_fail(ENOPROTOOPT); /* the path determines it */
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

/* Returns the path's MTU as a number of bytes. */
static int max_segment(const struct rs *rs)
{
	struct ibv_port_attr port;

	if (rs->id->verbs && ibv_query_port(rs->id->verbs, rs->id->port_num, &port) == 0)
		return 128 << port.active_mtu;
	return 4096;
}

static int get_other(struct rs *rs, int level, int optname, int *value)
{
	if (level == IPPROTO_TCP && optname == TCP_MAXSEG)
		*value = max_segment(rs);
	else if (level == IPPROTO_IP && optname == IP_TOS)
		*value = (int)rs->options.tos;
	else if (level != SOL_SOCKET)
		return rs_fail(ENOPROTOOPT);
	else if (optname == SO_ERROR)
		*value = take_error(rs);
	else if (optname == SO_TYPE)
		*value = rs->kind ? rs->kind->type : SOCK_STREAM;
	else if (optname == SO_DOMAIN)
		*value = rs->domain;
	else if (optname == SO_PROTOCOL)
		*value = rs->kind ? rs->kind->protocol : IPPROTO_TCP;
	else if (optname == SO_ACCEPTCONN)
		*value = rs->state == RS_LISTENING;
	else
		return rs_fail(ENOPROTOOPT);
	return 0;
}

/* For programs that report TCP's state (iperf3): nothing is counted as sent again or as unacknowledged. */
static struct tcp_info info_of(const struct rs *rs)
{
	return (struct tcp_info){ .tcpi_state = rs->state == RS_LISTENING ? TCP_LISTEN :
				  rs->state == RS_CONNECTED && !rs->broken ? TCP_ESTABLISHED : TCP_CLOSE,
				  .tcpi_snd_mss = (uint32_t)max_segment(rs), .tcpi_rcv_mss = (uint32_t)max_segment(rs),
				  .tcpi_snd_cwnd = rs->tx.slots };
}

/* A value longer than the caller's buffer is truncated, as by getsockopt(2). */
static int give(void *optval, socklen_t *optlen, const void *value, socklen_t length)
{
	if (*optlen > length)
		*optlen = length;
	memcpy(optval, value, *optlen);
	return 0;
}

static int get_option(struct rs *rs, int level, int optname, void *optval, socklen_t *optlen)
{
	const struct number *n = number_of(level, optname);
	struct tcp_info info;
	int value;

	if (n)
		return give(optval, optlen, kept(rs, n), sizeof(*kept(rs, n)));
	if (level == SOL_SOCKET && optname == SO_LINGER)
		return give(optval, optlen, &rs->options.linger, sizeof(rs->options.linger));
	if (level == SOL_RDMA && optname == RDMA_ROUTE)
		return rs->route ? give(optval, optlen, rs->route, rs->route_bytes) : rs_fail(ENODATA);
	if (level == IPPROTO_TCP && optname == TCP_INFO && !rs->kind) {
		info = info_of(rs);
		return give(optval, optlen, &info, sizeof(info));
	}
	return get_other(rs, level, optname, &value) ? -1 : give(optval, optlen, &value, sizeof(value));
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

/* O_NONBLOCK is kept in the socket: the event channel's descriptor never blocks. */
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
