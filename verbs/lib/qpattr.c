/* qpattr.c - conversion of queue pair attributes and states to and from urdmad's. */
#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>

#include "datapath/warn.h"
#include "making.h"

/* Alternate paths are not supported by any of our transports: there is nothing to migrate to, and every
 * queue pair is in the state "migrated". */
static bool names_alternate_path(const struct ibv_qp_attr *attr, int mask)
{
	return (mask & IBV_QP_ALT_PATH) || ((mask & IBV_QP_PATH_MIG_STATE) && attr->path_mig_state != IBV_MIG_MIGRATED);
}

/* The fields that have the same name in struct ibv_qp_attr (with its ah_attr and grh) and struct
 * urdma_abi_qp_attr. */
#define ATTRIBUTES(COPY)                                                                              \
	COPY(qp_state) COPY(cur_qp_state) COPY(path_mtu) COPY(qkey) COPY(rq_psn) COPY(sq_psn)         \
	COPY(dest_qp_num) COPY(qp_access_flags) COPY(pkey_index) COPY(port_num) COPY(max_rd_atomic)   \
	COPY(max_dest_rd_atomic) COPY(min_rnr_timer) COPY(timeout) COPY(retry_cnt) COPY(rnr_retry)    \
	COPY(en_sqd_async_notify)
#define PATH(COPY) COPY(dlid) COPY(sl) COPY(static_rate) COPY(src_path_bits)
#define ROUTE(COPY) COPY(sgid_index) COPY(flow_label) COPY(hop_limit) COPY(traffic_class)

static void to_abi(const struct ibv_qp_attr *a, struct urdma_abi_qp_attr *out)
{
#define IN(field) .field = a->field,
#define IN_PATH(field) .field = a->ah_attr.field,
#define IN_ROUTE(field) .field = a->ah_attr.grh.field,
	*out = (struct urdma_abi_qp_attr){
		ATTRIBUTES(IN) PATH(IN_PATH) ROUTE(IN_ROUTE)
		.is_global = a->ah_attr.is_global != 0,
		.ah_port_num = a->ah_attr.port_num,
	};
	memcpy(out->dgid, a->ah_attr.grh.dgid.raw, sizeof(out->dgid));
}

static void from_abi(const struct urdma_abi_query_qp_response *r, struct ibv_qp_attr *out)
{
	const struct urdma_abi_qp_attr *a = &r->attr;

#define OUT(field) .field = a->field,
#define OUT_PATH(field) .ah_attr.field = a->field,
#define OUT_ROUTE(field) .ah_attr.grh.field = a->field,
	*out = (struct ibv_qp_attr){
		ATTRIBUTES(OUT) PATH(OUT_PATH) ROUTE(OUT_ROUTE)
		.path_mig_state = IBV_MIG_MIGRATED,
		.sq_draining = a->sq_draining,
		.ah_attr.port_num = a->ah_port_num,
		.ah_attr.is_global = a->is_global,
		.cap = { r->cap.max_send_wr, r->cap.max_recv_wr, r->cap.max_send_sge, r->cap.max_recv_sge, r->cap.max_inline },
	};
	memcpy(out->ah_attr.grh.dgid.raw, a->dgid, sizeof(a->dgid));
}

uint64_t urdma_qp_max_message(enum ibv_qp_type type, const struct urdma_abi_device *port)
{
	switch (type) {
	case IBV_QPT_UD:
		return port->max_datagram;
	case IBV_QPT_RAW_PACKET:
		return port->mtu + ETH_HLEN;
	default:
		return port->max_msg;
	}
}

void urdma_qp_modified(struct urdma_qp *qp, const struct urdma_abi_query_qp_response *now)
{
	struct ibv_qp *ibv = &qp->ex.qp_base;

	urdma_qp_set_state(ibv, (enum ibv_qp_state)now->attr.qp_state);
	qp->port = urdma_port_info(ibv->context, now->attr.port_num);
	if (qp->port)
		qp->max_message = urdma_qp_max_message(ibv->qp_type, qp->port);
}

/* After a reset no request is outstanding: urdmad has discarded posted requests, and unpolled completions
 * do not belong to the reset queue pair. */
static void after_reset(struct urdma_qp *qp)
{
	urdma_qp_forget(qp);
	urdma_queue_reset(&qp->sq);
	urdma_queue_reset(&qp->rq);
}

/* An iWARP queue pair begins in RFC 5040's idle state, from which, as from INIT, a program may move it to
 * ERR; InfiniBand has no transition from RESET to ERR. */
static void leave_idle(struct urdma_qp *qp)
{
	struct urdma_abi_modify_qp request = {
		.handle = qp->ex.qp_base.handle,
		.mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		.attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 },
	};
	struct urdma_abi_query_qp_response response;

	URDMA_ASK(qp->client, URDMA_ABI_MODIFY_QP, &request, &response);
}

/* Fills in attributes that programs for iWARP leave out, because iWARP does not have them. */
static void complete_for_rnic(struct urdma_qp *qp, struct urdma_abi_modify_qp *request)
{
	if (!(request->mask & IBV_QP_STATE))
		return;
	if (request->attr.qp_state == IBV_QPS_INIT && !(request->mask & IBV_QP_PKEY_INDEX)) {
		request->mask |= IBV_QP_PKEY_INDEX;
		request->attr.pkey_index = 0;
	}
	if (request->attr.qp_state == IBV_QPS_ERR && qp->ex.qp_base.state == IBV_QPS_RESET)
		leave_idle(qp);
}

int urdma_qp_modification(struct ibv_qp *ibv, const struct ibv_qp_attr *attr, int mask,
	struct urdma_abi_modify_qp *request)
{
	const struct urdma_abi_device *port = urdma_port_info(ibv->context, attr->ah_attr.port_num);

	if (names_alternate_path(attr, mask))
		return EOPNOTSUPP;
	if ((mask & IBV_QP_AV) && attr->ah_attr.is_global && port && attr->ah_attr.grh.sgid_index >= urdma_gids(port))
		return EINVAL;
	*request = (struct urdma_abi_modify_qp){ .handle = ibv->handle, .mask = (uint32_t)mask };
	to_abi(attr, &request->attr);
	if (ibv->context->device->transport_type == IBV_TRANSPORT_IWARP)
		complete_for_rnic(urdma_qp_of(ibv), request);
	return 0;
}

URDMA_EXPORT int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct urdma_qp *qp = urdma_qp_of(ibv);
	struct urdma_abi_modify_qp request;
	struct urdma_abi_query_qp_response response;
	int status = urdma_qp_modification(ibv, attr, mask, &request);

	if (status)
		return urdma_status(status);
	status = URDMA_ASK(qp->client, URDMA_ABI_MODIFY_QP, &request, &response);
	if (status)
		return status;
	urdma_qp_modified(qp, &response);
	if (urdma_warn_wanted)
		urdma_warn_modified(qp, &response, mask);
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
		after_reset(qp);
	return 0;
}

URDMA_EXPORT int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct urdma_qp *qp = urdma_qp_of(ibv);
	struct urdma_abi_query_qp_response response;
	int status = urdma_qp_ask(qp, &response);

	(void)mask; /* all attributes are returned, whatever mask says: verbs allows it */
	if (status)
		return status;
	urdma_qp_set_state(ibv, (enum ibv_qp_state)response.attr.qp_state);
	from_abi(&response, attr);
	attr->cap.max_inline_data = qp->max_inline; /* which may be less than urdmad's */
	/* An iWARP queue pair begins in RFC 5040's idle state, which the kernel's drivers call INIT. */
	if (attr->qp_state == IBV_QPS_RESET && ibv->context->device->transport_type == IBV_TRANSPORT_IWARP)
		attr->qp_state = attr->cur_qp_state = IBV_QPS_INIT;
	memset(init, 0, sizeof(*init));
	init->qp_context = ibv->qp_context;
	init->send_cq = ibv->send_cq;
	init->recv_cq = ibv->recv_cq;
	init->srq = ibv->srq;
	init->cap = attr->cap;
	init->qp_type = ibv->qp_type;
	init->sq_sig_all = (int)response.sq_sig_all;
	return 0;
}

/* Data is placed in order unless urdma.json says otherwise. That file may change after this call, so
 * in-order placement is not promised. */
URDMA_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	(void)qp, (void)op, (void)flags;
	return 0;
}

/* Enhanced connection establishment: our transports have no options to negotiate. */
URDMA_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp, (void)ece;
	return urdma_status(EOPNOTSUPP);
}

URDMA_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	memset(ece, 0, sizeof(*ece));
	return urdma_status(EOPNOTSUPP);
}
