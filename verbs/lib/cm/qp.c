/*
 * qp.c - queue pairs that belong to an id, with the completion queues and channels made for them, and
 * shared receive queues.
 *
 * The inline functions of rdma/rdma_verbs.h use the fields that are set here.
 */
#include <errno.h>

#include "cm.h"

static int create_cq(struct rdma_cm_id *id, uint32_t entries,
		     struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	if (!entries)
		return 0;
	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return -1;
	*cq = ibv_create_cq(id->verbs, (int)entries, id, *channel, 0);
	return *cq ? 0 : -1;
}

static void forget_cqs(struct rdma_cm_id *id)
{
	id->send_cq = id->recv_cq = NULL;
	id->send_cq_channel = id->recv_cq_channel = NULL;
}

static void destroy_cqs(struct rdma_cm_id *id)
{
	if (id->send_cq && id->send_cq != id->recv_cq)
		ibv_destroy_cq(id->send_cq);
	if (id->recv_cq)
		ibv_destroy_cq(id->recv_cq);
	if (id->send_cq_channel && id->send_cq_channel != id->recv_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	forget_cqs(id);
}

static bool differ(const void *a, const void *b)
{
	return a && b && a != b;
}

static bool is_target(const struct rdma_cm_id *id)
{
	return id->qp_type == IBV_QPT_XRC_RECV || (id->qp && id->qp->qp_type == IBV_QPT_XRC_RECV);
}

/* Fills in the attributes that the program left out and the id already has: protection domain, queues. */
static int complete_attr(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (!id->verbs || id->qp)
		return urdma_fail(EINVAL);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pd;
	} else if (attr->pd->context != id->verbs) {
		return urdma_fail(EINVAL);
	}
	if (differ(id->send_cq, attr->send_cq) || differ(id->recv_cq, attr->recv_cq) ||
	    differ(id->srq, attr->srq))
		return urdma_fail(EINVAL);
	if (!attr->send_cq)
		attr->send_cq = id->send_cq;
	if (!attr->recv_cq)
		attr->recv_cq = id->recv_cq;
	if (!attr->srq)
		attr->srq = id->srq;
	if (attr->qp_type == IBV_QPT_XRC_RECV && !(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)) {
		attr->xrcd = cm_shared_xrcd(id->verbs);
		attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
		return attr->xrcd ? 0 : -1;
	}
	return 0;
}

void cm_init_attr(const struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	attr->qp_state = IBV_QPS_INIT;
	if (cm_is_datagram(id)) {
		attr->qkey = RDMA_UDP_QKEY;
		attr->port_num = id->port_num;
		*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
		return;
	}
	attr->qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	attr->port_num = id->port_num;
	attr->pkey_index = 0;
	*mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT;
	if (cm_uses_ibcm(id))
		*mask |= IBV_QP_PKEY_INDEX;
}

static int fail_after_cleanup(struct rdma_cm_id *id, struct ibv_qp *qp, bool made_cqs)
{
	int saved = errno;

	if (qp)
		ibv_destroy_qp(qp);
	if (made_cqs)
		destroy_cqs(id);
	return urdma_fail(saved);
}

/* Creates a queue pair of type XRC_RECV. It has no completion queues: the ones that its caps ask for
 * belong to its shared receive queues. */
static int create_target(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	bool fresh = !id->send_cq && !id->recv_cq; /* queues made here, to be destroyed on failure */
	struct ibv_qp_attr init = { 0 };
	struct ibv_qp *qp;
	int mask;

	if ((!attr->recv_cq && create_cq(id, attr->cap.max_recv_wr, &id->recv_cq_channel, &id->recv_cq)) ||
	    (!attr->send_cq && create_cq(id, attr->cap.max_send_wr, &id->send_cq_channel, &id->send_cq)))
		return fail_after_cleanup(id, NULL, fresh);
	cm_init_attr(id, &init, &mask);
	qp = ibv_create_qp_ex(id->verbs, attr);
	if (!qp || cm_result(ibv_modify_qp(qp, &init, mask)))
		return fail_after_cleanup(id, qp, fresh);
	id->pd = attr->pd; /* an id without a protection domain takes the one of the attributes */
	id->qp = qp;
	return 0;
}

/* Creates the queue pair, ready for receives to be posted, and the completion queues that the program did
 * not provide. */
static int create_queues(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct urdma_queues wanted = {
		.attr = attr,
		.send_entries = attr->send_cq ? 0 : attr->cap.max_send_wr,
		.recv_entries = attr->recv_cq ? 0 : attr->cap.max_recv_wr,
		.cq_context = id,
	};
	int status;

	cm_first_moves(id, &wanted);
	status = urdma_queues_create(id->verbs, &wanted);
	if (status)
		return urdma_fail(status);
	if (wanted.send_cq) {
		id->send_cq = wanted.send_cq;
		id->send_cq_channel = wanted.send_channel;
	}
	if (wanted.recv_cq) {
		id->recv_cq = wanted.recv_cq;
		id->recv_cq_channel = wanted.recv_channel;
	}
	id->pd = attr->pd;
	id->qp = wanted.qp;
	return 0;
}

URDMA_EXPORT int rdma_create_qp_ex(struct rdma_cm_id *id,
				   struct ibv_qp_init_attr_ex *attr)
{
	if (complete_attr(id, attr))
		return -1;
	return attr->qp_type == IBV_QPT_XRC_RECV ? create_target(id, attr) : create_queues(id, attr);
}

URDMA_EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
				struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex extended = urdma_extended_attr(attr, pd);
	int failed = rdma_create_qp_ex(id, &extended);

	attr->cap = extended.cap; /* the actual sizes of the queue pair */
	return failed;
}

URDMA_EXPORT void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct urdma_queues made = {
		.qp = id->qp,
		.send_channel = id->send_cq_channel, .recv_channel = id->recv_cq_channel,
		.send_cq = id->send_cq, .recv_cq = id->recv_cq,
	};

	if (id->qp) {
		cm_groups_detach(id);
		if (urdma_queues_destroy(&made))
			forget_cqs(id);
		else
			ibv_destroy_qp(id->qp);
	}
	id->qp = NULL;
	destroy_cqs(id);
}

/* Fills in the additional attributes of a shared receive queue in an XRC domain. */
static int complete_xrc(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD)) {
		attr->xrcd = cm_shared_xrcd(id->verbs);
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ)) {
		if (!id->recv_cq && create_cq(id, attr->attr.max_wr, &id->recv_cq_channel, &id->recv_cq))
			return -1;
		attr->cq = id->recv_cq;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	}
	return attr->xrcd ? 0 : -1;
}

URDMA_EXPORT int rdma_create_srq_ex(struct rdma_cm_id *id,
				    struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq;

	if (!id->verbs || id->srq)
		return urdma_fail(EINVAL);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	if (attr->srq_type == IBV_SRQT_XRC && complete_xrc(id, attr))
		return -1;
	srq = ibv_create_srq_ex(id->verbs, attr);
	if (!srq)
		return -1;
	id->pd = attr->pd;
	id->srq = srq;
	return 0;
}

URDMA_EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
				 struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex extended = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = is_target(id) ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
		.pd = pd,
	};
	int failed = rdma_create_srq_ex(id, &extended);

	attr->attr = extended.attr;
	return failed;
}

URDMA_EXPORT void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id->srq)
		ibv_destroy_srq(id->srq);
	id->srq = NULL;
	if (!id->qp)
		destroy_cqs(id);
}
