/* mistakes_cm.h - two ids of rdma_cm in one process, of which one asks the other for a connection. */
#ifndef MISTAKES_CM_H
#define MISTAKES_CM_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include "mistakes.h"

static struct rdma_event_channel *events;

/* The next event's id; the event must be of a type. */
static inline struct rdma_cm_id *next_event(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	must(!rdma_get_cm_event(events, &event) && event->event == type, rdma_event_str(type));
	id = event->id;
	must(!rdma_ack_cm_event(event), "rdma_ack_cm_event");
	return id;
}

/* Gives an id a queue pair. */
static inline void paired(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 16, 16, 1, 1, 0 } };

	must(!rdma_create_qp(id, NULL, &init), "rdma_create_qp");
}

/* Returns a new id that may ask a listener of this process at an address of urdmad (urdma show
 * port). */
static inline struct rdma_cm_id *asking(const char *address)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct rdma_cm_id *listener, *id;

	must(address && inet_pton(AF_INET, address, &at.sin_addr) == 1, "the argument is no address");
	must((events = rdma_create_event_channel()) != NULL, "rdma_create_event_channel");
	must(!rdma_create_id(events, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(!rdma_bind_addr(listener, (struct sockaddr *)&at) && !rdma_listen(listener, 0), "rdma_listen");
	must(!rdma_create_id(events, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(!rdma_resolve_addr(id, NULL, rdma_get_local_addr(listener), 1000), "rdma_resolve_addr");
	must(next_event(RDMA_CM_EVENT_ADDR_RESOLVED) == id && !rdma_resolve_route(id, 1000), "rdma_resolve_route");
	must(next_event(RDMA_CM_EVENT_ROUTE_RESOLVED) == id, "rdma_resolve_route");
	paired(id);
	return id;
}

/* Has it ask, and returns the id that the request brings. */
static inline struct rdma_cm_id *requested(const char *address, struct rdma_conn_param *param)
{
	must(!rdma_connect(asking(address), param), "rdma_connect");
	return next_event(RDMA_CM_EVENT_CONNECT_REQUEST);
}

#endif /* MISTAKES_CM_H */
