/*
 * connect.c - calls that make and end connections: listen, connect, accept, reject, establish, disconnect.
 *
 * urdmad moves a queue pair that is named in connect or accept through its states; here only this
 * process's copy of the state is updated.
 */
#include <errno.h>
#include <string.h>

#include "cm.h"

/* A backlog of 0 or less means urdmad's default; for the kernel it means the maximum. */
URDMA_EXPORT int rdma_listen(struct rdma_cm_id *public, int backlog)
{
	struct cm_id *id = cm_id_of(public);
	struct urdma_abi_cm_value request = {
		.id = id->handle,
		.value = backlog > 0 ? (uint32_t)backlog : 0,
	};
	struct urdma_abi_cm_bound bound;
	int error = URDMA_ASK(id->client, URDMA_ABI_CM_LISTEN, &request, &bound);

	return cm_result(error ? error : cm_address_bound(id, &bound));
}

/* The checks that librdmacm makes before it connects or accepts an id of RDMA_PS_TCP. */
static int check_param(const struct rdma_cm_id *id,
		       const struct rdma_conn_param *param)
{
	uint8_t depth;

	if (!id->verbs)
		return EINVAL;
	if (id->ps != RDMA_PS_TCP)
		return 0;
	if (!id->qp && !param)
		return EINVAL;
	if (!param)
		return 0;
	depth = cm_device_depth(id->verbs);
	if (param->responder_resources != RDMA_MAX_RESP_RES &&
	    param->responder_resources > depth)
		return EINVAL;
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    param->initiator_depth > depth)
		return EINVAL;
	return 0;
}

/* Returns 0, or EINVAL for more private data than InfiniBand's message carries. A device shown as iWARP
 * has no such limit. */
static int check_private(const struct cm_id *id, const char *call, const struct urdma_abi_cm_param *param,
	unsigned int most)
{
	if (param->private_data_len <= most)
		return 0;
	if (urdma_warn_wanted)
		urdma_warn(id->client, param->qp_num, URDMA_ABI_PITFALL_PRIVATE,
			"private_data_len is %u, and InfiniBand and RoCE carry %u here",
			   param->private_data_len, most);
	if (!cm_uses_ibcm(&id->public))
		return 0;
	return urdma_wrong(EINVAL, "%s: private_data_len is %u, allowed: 0 to %u; iWARP carries more (--transport iwarp)",
		call,
			   param->private_data_len, most);
}

/* Appends private data. ai_connect, saved by rdma_create_ep, goes first. */
static int add_private(struct urdma_abi_cm_param *to, const void *data,
		       size_t length)
{
	if (!data || !length)
		return 0;
	if (to->private_data_len + length > UINT8_MAX)
		return EINVAL; /* the length has 8 bits in the peer's event */
	memcpy(to->private_data + to->private_data_len, data, length);
	to->private_data_len += (uint16_t)length;
	return 0;
}

static int fill_param(struct cm_id *id, const struct rdma_conn_param *from,
		      struct urdma_abi_cm_param *to)
{
	const struct ibv_qp *qp = id->public.qp;
	int error;

	to->qp_num = qp ? qp->qp_num : from ? from->qp_num : 0;
	to->qp = id->qp_handle = cm_qp_named(id, to->qp_num);
	to->qkey = cm_is_datagram(&id->public) ? RDMA_UDP_QKEY : 0;
	to->srq = qp ? qp->srq != NULL : from ? from->srq : 0;
	to->responder_resources = id->responder_resources;
	to->initiator_depth = id->initiator_depth;
	to->flow_control = from ? from->flow_control : 0;
	to->retry_count = from ? from->retry_count : 7;
	to->rnr_retry_count = from ? from->rnr_retry_count : 7;
	error = add_private(to, id->connect_data, id->connect_length);
	if (!error && from)
		error = add_private(to, from->private_data,
				    from->private_data_len);
	return error;
}

static uint8_t smaller(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

URDMA_EXPORT int rdma_connect(struct rdma_cm_id *public,
			      struct rdma_conn_param *param)
{
	struct cm_id *id = cm_id_of(public);
	struct urdma_abi_cm_conn request = { .id = id->handle };
	int error = check_param(public, param);
	uint8_t depth;

	if (error)
		return urdma_fail(error);
	depth = cm_device_depth(public->verbs);
	id->responder_resources = param ? smaller(param->responder_resources, depth) : depth;
	id->initiator_depth = param ? smaller(param->initiator_depth, depth) : depth;
	id->active = true;
	error = fill_param(id, param, &request.param);
	if (!error)
		error = check_private(id, "rdma_connect", &request.param, cm_is_datagram(public) ? CM_LOOKUP : CM_REQUEST);
	if (!error)
		error = URDMA_TELL(id->client, URDMA_ABI_CM_CONNECT, &request);
	return cm_complete(id, error);
}

/* Until choose_depths, id->initiator_depth is the depth that the connection request offered. */
static void check_depth(const struct cm_id *id, const struct rdma_conn_param *param)
{
	if (!cm_is_datagram(&id->public) && param && param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    param->initiator_depth > id->initiator_depth)
		urdma_warn(id->client, 0, URDMA_ABI_PITFALL_RD_ATOMIC,
			"rdma_accept: initiator_depth is %u, and that of the request's event %u",
			   param->initiator_depth, id->initiator_depth);
}

/* A depth that is not given, or 0xFF, means the depth in the connection request, limited by the device. */
static void choose_depths(struct cm_id *id, const struct rdma_conn_param *param)
{
	uint8_t depth = cm_device_depth(id->public.verbs);

	if (param && param->responder_resources != RDMA_MAX_RESP_RES)
		id->responder_resources = param->responder_resources;
	else
		id->responder_resources = smaller(id->responder_resources, depth);
	if (param && param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		id->initiator_depth = param->initiator_depth;
	else
		id->initiator_depth = smaller(id->initiator_depth, depth);
}

URDMA_EXPORT int rdma_accept(struct rdma_cm_id *public,
			     struct rdma_conn_param *param)
{
	struct cm_id *id = cm_id_of(public);
	struct urdma_abi_cm_conn request = { .id = id->handle };
	int error = check_param(public, param);

	if (error)
		return urdma_fail(error);
	if (urdma_warn_wanted)
		check_depth(id, param);
	choose_depths(id, param);
	error = fill_param(id, param, &request.param);
	if (!error)
		error = check_private(id, "rdma_accept", &request.param, cm_is_datagram(public) ? CM_FOUND : CM_REPLY);
	if (error)
		return urdma_fail(error);
	if (cm_is_datagram(public)) /* a datagram id has no connection: no event follows */
		return cm_result(URDMA_TELL(id->client, URDMA_ABI_CM_ACCEPT, &request));
	/* The state is set before the request is sent: another thread may read the event that ends the
	 * connection before this call continues. */
	cm_qp_moved(id, IBV_QPS_RTS);
	error = URDMA_TELL(id->client, URDMA_ABI_CM_ACCEPT, &request);
	if (error)
		cm_qp_moved(id, IBV_QPS_ERR);
	return cm_complete(id, error);
}

URDMA_EXPORT int rdma_reject(struct rdma_cm_id *public, const void *data,
			     uint8_t length)
{
	struct cm_id *id = cm_id_of(public);
	struct urdma_abi_cm_conn request = { .id = id->handle };
	int error = add_private(&request.param, data, length);

	if (!error)
		error = check_private(id, "rdma_reject", &request.param, cm_is_datagram(public) ? CM_FOUND : CM_REJECT);
	if (error)
		return urdma_fail(error);
	return cm_result(URDMA_TELL(id->client, URDMA_ABI_CM_REJECT, &request));
}

/* The reason "ECE not supported" is not sent, because no peer offers ECE. */
URDMA_EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *data,
				 uint8_t length)
{
	return rdma_reject(id, data, length);
}

URDMA_EXPORT int rdma_establish(struct rdma_cm_id *public)
{
	struct cm_id *id = cm_id_of(public);
	struct urdma_abi_cm_conn request = { .id = id->handle };

	if (public->qp)
		return urdma_fail(EINVAL);
	if (id->connected)
		return 0; /* urdmad has already established the connection: see event.c */
	/* As in the kernel's interface, accepting a response establishes the connection. */
	return cm_result(URDMA_TELL(id->client, URDMA_ABI_CM_ACCEPT, &request));
}

URDMA_EXPORT int rdma_disconnect(struct rdma_cm_id *public)
{
	struct cm_id *id = cm_id_of(public);
	int error;

	if (!public->verbs)
		return urdma_fail(EINVAL);
	error = urdma_call_handle(id->client, URDMA_ABI_CM_DISCONNECT, id->handle);
	if (error)
		return urdma_fail(error);
	if (cm_is_datagram(public))
		return 0;
	cm_qp_moved(id, IBV_QPS_ERR);
	if (id->sync && !id->connected)
		return 0; /* DISCONNECTED was already read, or will never come */
	return cm_complete(id, 0);
}
