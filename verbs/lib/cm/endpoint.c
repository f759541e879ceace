/*
 * endpoint.c - rdma_create_ep and related calls: an id whose addresses are resolved and whose queue pair
 * is made in one call, and connection requests that get a queue pair when they are read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"

#define RESOLVE_MS 2000 /* librdmacm's timeout for each of the two resolutions */

/* Binds a listener and saves the attributes for rdma_get_request. */
static int prepare_passive(struct rdma_cm_id *public,
			   const struct rdma_addrinfo *res, struct ibv_pd *pd,
			   const struct ibv_qp_init_attr *attr)
{
	struct cm_id *id = cm_id_of(public);

	if (rdma_bind_addr(public, res->ai_src_addr))
		return -1;
	if (!attr)
		return 0;
	id->passive_attr = malloc(sizeof(*attr));
	if (!id->passive_attr)
		return urdma_fail(ENOMEM);
	*id->passive_attr = *attr;
	id->passive_attr->qp_type = res->ai_qp_type;
	if (pd)
		public->pd = pd;
	return 0;
}

static int keep_connect_data(struct cm_id *id, const struct rdma_addrinfo *res)
{
	if (!res->ai_connect_len)
		return 0;
	id->connect_data = malloc(res->ai_connect_len);
	if (!id->connect_data)
		return urdma_fail(ENOMEM);
	memcpy(id->connect_data, res->ai_connect, res->ai_connect_len);
	id->connect_length = res->ai_connect_len;
	return 0;
}

static int prepare_active(struct rdma_cm_id *public,
			  const struct rdma_addrinfo *res, struct ibv_pd *pd,
			  struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(public, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS))
		return -1;
	if (rdma_resolve_route(public, RESOLVE_MS))
		return -1;
	if (attr) {
		attr->qp_type = res->ai_qp_type;
		if (rdma_create_qp(public, pd, attr))
			return -1;
	}
	return keep_connect_data(cm_id_of(public), res);
}

URDMA_EXPORT int rdma_create_ep(struct rdma_cm_id **result,
				struct rdma_addrinfo *res, struct ibv_pd *pd,
				struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *id;
	int failed, saved;

	if (!result || !res)
		return urdma_fail(EINVAL);
	if (cm_id_create(NULL, &id, NULL, res->ai_port_space, res->ai_qp_type))
		return -1;
	if (res->ai_flags & RAI_PASSIVE)
		failed = prepare_passive(id, res, pd, attr);
	else
		failed = prepare_active(id, res, pd, attr);
	if (failed) {
		saved = errno;
		rdma_destroy_ep(id);
		return urdma_fail(saved);
	}
	*result = id;
	return 0;
}

URDMA_EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

/* Makes the queue pair for the connection request in an event. Returns 0 or an errno value. */
static int take_request(struct cm_id *listener, struct rdma_cm_event *event)
{
	struct ibv_qp_init_attr attr;

	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return ENODEV;
	if (event->status)
		return event->status < 0 ? -event->status : event->status;
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return EINVAL;
	if (!listener->passive_attr)
		return 0;
	attr = *listener->passive_attr;
	return rdma_create_qp(event->id, listener->public.pd, &attr) ? errno : 0;
}

URDMA_EXPORT int rdma_get_request(struct rdma_cm_id *public,
				  struct rdma_cm_id **result)
{
	struct cm_id *listener = cm_id_of(public);
	struct rdma_cm_event *event;
	struct rdma_cm_id *refused;
	int error;

	if (!listener->sync)
		return urdma_fail(EINVAL);
	cm_drop_event(public);
	if (rdma_get_cm_event(public->channel, &event))
		return -1;
	error = take_request(listener, event);
	if (!error) {
		*result = event->id;
		event->id->event = event;
		return 0;
	}
	/* The queue pair could not be made, so the request can't be returned to the program: end it. */
	refused = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL;
	rdma_ack_cm_event(event);
	if (refused)
		rdma_destroy_id(refused);
	return urdma_fail(error);
}
