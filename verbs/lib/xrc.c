/*
 * xrc.c - extended reliable connections: XRC domains, and target queue pairs (type XRC_RECV), which have
 * no queues of their own. Shared receive queues in a domain are in srq.c; queue pairs of type XRC_SEND are
 * created as others are (qp.c).
 */
#include <errno.h>
#include <stdlib.h>

#include "making.h"
#include "tables.h"

struct urdma_xrcd {
	struct ibv_xrcd xrcd;
	uint32_t handle;
};

uint32_t urdma_xrcd_handle(const struct ibv_xrcd *xrcd)
{
	return ((const struct urdma_xrcd *)xrcd)->handle;
}

/* fd -1: a domain that only the caller uses. */
struct ibv_xrcd *urdma_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct urdma_context *c = urdma_context_of(context);
	struct urdma_abi_open_xrcd request = { .context = c->handle, .oflags = (uint32_t)attr->oflags };
	struct urdma_abi_handle response;
	struct urdma_xrcd *xrcd;
	int status;

	if (attr->comp_mask != both)
		return urdma_null(EINVAL);
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return NULL;
	status = urdma_call_fds(c->client, URDMA_ABI_OPEN_XRCD, &request, sizeof(request), &response, sizeof(response),
				attr->fd, NULL, 0);
	if (status) {
		free(xrcd);
		return urdma_null(status);
	}
	xrcd->xrcd.context = context;
	xrcd->handle = response.handle;
	return &xrcd->xrcd;
}

/* EBUSY while shared receive queues or queue pairs in it exist. */
int urdma_close_xrcd(struct ibv_xrcd *ibv)
{
	struct urdma_client *client = urdma_context_of(ibv->context)->client;
	int status = urdma_call_destroy(client, URDMA_ABI_CLOSE_XRCD, urdma_xrcd_handle(ibv));

	if (status)
		return status;
	free(ibv);
	return 0;
}

/* Allocates a target queue pair that is about to be created or opened. */
static struct urdma_qp *new_target(struct ibv_context *context, void *qp_context)
{
	return urdma_qp_bare(context, &(struct ibv_qp_init_attr_ex){ .qp_context = qp_context, .qp_type = IBV_QPT_XRC_RECV });
}

static struct ibv_qp *finish_target(struct urdma_qp *qp, int status, uint32_t handle, uint32_t number)
{
	struct ibv_qp *base = &qp->ex.qp_base;

	base->handle = handle;
	base->qp_num = number;
	if (!status) {
		status = urdma_handles_add(qp->client, URDMA_KIND_QP, handle, qp);
		if (status)
			urdma_call_handle(qp->client, URDMA_ABI_DESTROY_QP, handle);
	}
	if (!status)
		return base;
	urdma_qp_discard(qp);
	return urdma_null(status);
}

/* The caller's protection domain, queues and capacities are ignored. */
struct ibv_qp *urdma_create_target(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct urdma_abi_create_qp request = { .qp_type = attr->qp_type };
	struct urdma_abi_qp_response response = { 0 };
	struct urdma_qp *qp;
	int status;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd ||
	    (attr->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_PD)))
		return urdma_null(EINVAL);
	qp = new_target(context, attr->qp_context);
	if (!qp)
		return NULL;
	request.xrcd = urdma_xrcd_handle(attr->xrcd);
	request.user_handle = qp->user_handle;
	status = URDMA_ASK(qp->client, URDMA_ABI_CREATE_QP, &request, &response);
	attr->cap = (struct ibv_qp_cap){ 0 };
	return finish_target(qp, status, response.handle, response.qpn);
}

struct ibv_qp *urdma_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct urdma_abi_open_qp request = { .qp_num = attr->qp_num };
	struct urdma_abi_handle response = { 0 };
	struct urdma_qp *qp;
	int status;

	if ((attr->comp_mask & needed) != needed || (attr->comp_mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT)) ||
	    attr->qp_type != IBV_QPT_XRC_RECV || !attr->xrcd)
		return urdma_null(EINVAL);
	qp = new_target(context, attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL);
	if (!qp)
		return NULL;
	request.xrcd = urdma_xrcd_handle(attr->xrcd);
	status = URDMA_ASK(qp->client, URDMA_ABI_OPEN_QP, &request, &response);
	return finish_target(qp, status, response.handle, attr->qp_num);
}
