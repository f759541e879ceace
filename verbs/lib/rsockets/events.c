/* events.c - rdma_cm events that establish and end connections. */
#include "rsockets.h"

#define RESOLVE_MS 5000

static void fail(struct rs *rs, int error)
{
	rs->state = RS_FAILED;
	rs->error = error ? error : ECONNREFUSED;
	rs_signal(rs);
}

/* ADDR_RESOLVED: resolve the route, or set the one given by RDMA_ROUTE. */
static int resolve_route(struct rs *rs)
{
	rs->state = RS_RESOLVING_ROUTE;
	if (rs->route)
		return rdma_set_option(rs->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, rs->route, rs->route_bytes);
	return rdma_resolve_route(rs->id, RESOLVE_MS);
}

/* ROUTE_RESOLVED: create the queues and memory, and send the connection request. */
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

int rs_event_error(const struct rdma_cm_event *event)
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

/* If rs->rx.table is known, the peer's hello was read before, on the listener's side. */
static void established(struct rs *rs, const struct rdma_cm_event *event)
{
	if (!rs->rx.table.bytes && !rs_hello_read(rs, &event->param.conn)) {
		fail(rs, EPROTO);
		return;
	}
	rs->state = RS_CONNECTED;
	rs_progress(rs); /* grants the second half of the ring */
	rs_signal(rs);
}

/* Returns whether urdmad may send the event now. */
static bool in_turn(const struct rs *rs, enum rdma_cm_event_type event)
{
	switch (event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return rs->state == RS_RESOLVING_ADDR;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return rs->state == RS_RESOLVING_ROUTE;
	case RDMA_CM_EVENT_ESTABLISHED:
		return rs->state == RS_CONNECTING;
	default:
		return true;
	}
}

static void take_event(struct rs *rs, const struct rdma_cm_event *event)
{
	switch (in_turn(rs, event->event) ? event->event : RDMA_CM_EVENT_CONNECT_ERROR) {
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
			fail(rs, rs_event_error(event));
			return;
		}
		rs_progress(rs); /* processes messages that arrived before the end */
		rs_break(rs, ECONNRESET);
	}
}

void rs_take_events(struct rs *rs)
{
	struct rdma_cm_event *event, copy;
	int before = errno;

	if (rs->state == RS_LISTENING || rs->state == RS_DATAGRAM)
		return; /* the service thread reads them */
	errno = 0;
	while ( rdma_get_cm_event(rs->channel, &event) == 0) {
		copy = *event;
		if (event->event != RDMA_CM_EVENT_ESTABLISHED) {
			rdma_ack_cm_event(event);
			take_event(rs, &copy);
			continue;
		}
		take_event(rs, event); /* taken now, because the event contains the peer's private data */
		rdma_ack_cm_event(event);
	}
	if (errno == ENODEV) { /* urdmad has ended */
		if (rs->state == RS_CONNECTED)
			rs_break(rs, ECONNRESET);
		else if (rs->state != RS_IDLE && rs->state != RS_FAILED)
			fail(rs, ENETDOWN);
	}
	errno = before;
}
