/* connect.c - rconnect. */
#include <string.h>

#include "rsockets.h"

#define RESOLVE_MS 5000

/* After a failed attempt to connect, another one needs a new id. */
static int new_attempt(struct rs *rs)
{
	int yes = 1;

	if (rs->state != RS_FAILED)
		return 0;
	rs_release_queues(rs);
	rdma_destroy_id(rs->id);
	rs->id = NULL;
	if (rdma_create_id(rs->channel, &rs->id, rs, RDMA_PS_TCP))
		return -1;
	if (rs->options.reuse)
		rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes));
	memset(&rs->tx, 0, sizeof(rs->tx));
	memset(&rs->rx, 0, sizeof(rs->rx));
	rs->error = 0;
	rs->state = RS_IDLE;
	return 0;
}

static int take_error(struct rs *rs)
{
	int error = rs->error;

	rs->error = 0;
	return error;
}

static int begin(struct rs *rs, struct sockaddr *to)
{
	switch (rs->state) {
	case RS_CONNECTED:
		return rs_fail(EISCONN);
	case RS_LISTENING:
		return rs_fail(EOPNOTSUPP);
	case RS_RESOLVING_ADDR:
	case RS_RESOLVING_ROUTE:
	case RS_CONNECTING:
		return rs_fail(EALREADY);
	case RS_FAILED:
		if (rs->error) /* the error of the earlier attempt, reported once as by connect(2) */
			return rs_fail(take_error(rs));
		break;
	default:
		break;
	}
	if (new_attempt(rs))
		return -1;
	rs->state = RS_RESOLVING_ADDR;
	if (!rdma_resolve_addr(rs->id, NULL, to, RESOLVE_MS))
		return 0;
	rs->state = RS_IDLE;
	return -1;
}

static bool decided(struct rs *rs)
{
	return rs->state == RS_CONNECTED || rs->state == RS_FAILED;
}

static int finish(struct rs *rs)
{
	int error;

	if (rs->options.nonblock)
		return rs_fail(EINPROGRESS); /* rpoll and SO_ERROR report the result */
	error = rs_wait(rs, decided, -1);
	if (error)
		return rs_fail(error);
	if (rs->closed)
		return rs_fail(EBADF);
	if (rs->state == RS_CONNECTED)
		return 0;
	error = take_error(rs);
	return rs_fail(error ? error : ECONNREFUSED);
}

RS_EXPORT int rconnect(int socket, const struct sockaddr *addr, socklen_t length)
{
	struct sockaddr_storage to;
	struct rs *rs = rs_take(socket);
	int result;

	if (!rs)
		return -1;
	if (rs->state == RS_DATAGRAM)
		result = rs->kind->connect(rs, addr, length);
	else if (!rs_read_name(addr, length, &to))
		result = rs_fail(EINVAL);
	else
		result = begin(rs, (struct sockaddr *)&to) || rs_set_keepalive(rs) ? -1 : finish(rs);
	rs_drop(rs);
	return result;
}
