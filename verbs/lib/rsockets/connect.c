/* connect.c - rconnect, and the events of rdma_cm that make and end connections. */
#include <stdlib.h>
#include <string.h>

#include "rsockets.h"

#define RESOLVE_MS 5000

void rs_break(struct rs *rs, int error)
{
	if (rs->broken)
		return;
	rs->broken = true;
	if (!rs->rx.ended && !rs->error)
		rs->error = error;
	rs_signal(rs);
}

static void fail(struct rs *rs, int error)
{
	rs->state = RS_FAILED;
	rs->error = error ? error : ECONNREFUSED;
	rs_signal(rs);
}

/* ADDR_RESOLVED: the route, or what RDMA_ROUTE said in its place. */
static int resolve_route(struct rs *rs)
{
	rs->state = RS_RESOLVING_ROUTE;
	if (rs->route)
		return rdma_set_option(rs->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, rs->route, rs->route_bytes);
	return rdma_resolve_route(rs->id, RESOLVE_MS);
}

/* ROUTE_RESOLVED: all that a connection needs, and the request. */
static int request(struct rs *rs)
{
	struct rdma_conn_param param;
	struct rs_hello hello;
	int error = rs_make_queues(rs);

	if (error)
		return rs_fail(error);
	rs_fill_param(rs, &hello, &param);
	rs->state = RS_CONNECTING;
	return rdma_connect(rs->id, &param);
}

static int error_of(const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_REJECTED:
		return ECONNREFUSED;
	case RDMA_CM_EVENT_UNREACHABLE:
		return ETIMEDOUT;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return ENETDOWN;
	default:
		return event->status < 0 ? -event->status : EHOSTUNREACH;
	}
}

/* rs->tx.credits says whether the peer's hello was read, as a listener's side has. */
static void established(struct rs *rs, const struct rdma_cm_event *event)
{
	if (!rs->tx.credits && !rs_hello_read(rs, &event->param.conn)) {
		fail(rs, EPROTO);
		return;
	}
	rs->state = RS_CONNECTED;
	rs_signal(rs);
}

static void take_event(struct rs *rs, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (resolve_route(rs))
			fail(rs, errno);
		return;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (request(rs))
			fail(rs, errno);
		return;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(rs, event);
		return;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return;
	default:
		if (rs->state != RS_CONNECTED) {
			fail(rs, error_of(event));
			return;
		}
		rs_progress(rs); /* what arrived before the end */
		rs_break(rs, ECONNRESET);
	}
}

void rs_take_events(struct rs *rs)
{
	struct rdma_cm_event *event, copy;
	int before = errno;

	errno = 0;
	while (rs->state != RS_LISTENING && rdma_get_cm_event(rs->channel, &event) == 0) {
		copy = *event;
		if (event->event != RDMA_CM_EVENT_ESTABLISHED) {
			rdma_ack_cm_event(event);
			take_event(rs, &copy);
			continue;
		}
		take_event(rs, event); /* it has the peer's private data */
		rdma_ack_cm_event(event);
	}
	if (errno == ENODEV) { /* urdmad is gone */
		if (rs->state == RS_CONNECTED)
			rs_break(rs, ECONNRESET);
		else if (rs->state != RS_IDLE && rs->state != RS_FAILED)
			fail(rs, ENETDOWN);
	}
	errno = before;
}

/* A socket whose attempt has failed tries again, with an id that knows nothing of
 * it. */
static int start_anew(struct rs *rs)
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
	default:
		break;
	}
	if (start_anew(rs))
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
	int error = rs_wait(rs, decided, rs->options.nonblock ? 0 : -1);

	if (error == ETIMEDOUT)
		return rs_fail(EINPROGRESS);
	if (error)
		return rs_fail(error);
	if (rs->closed)
		return rs_fail(EBADF);
	if (rs->state == RS_CONNECTED)
		return 0;
	error = rs->error;
	rs->error = 0;
	return rs_fail(error ? error : ECONNREFUSED);
}

RS_EXPORT int rconnect(int socket, const struct sockaddr *addr, socklen_t length)
{
	struct sockaddr_storage to;
	struct rs *rs = rs_take(socket);
	int result;

	if (!rs)
		return -1;
	if (!rs_read_name(addr, length, &to))
		result = rs_fail(EINVAL);
	else
		result = begin(rs, (struct sockaddr *)&to) ? -1 : finish(rs);
	rs_drop(rs);
	return result;
}
