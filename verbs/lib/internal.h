/*
 * internal.h - what the libibverbs part (this folder and those below it) promises the librdmacm
 * part (cm/), which builds on it. Errors are as session/session.h says.
 */
#ifndef URDMA_INTERNAL_H
#define URDMA_INTERNAL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "datapath/state.h"
#include "device/device.h"
#include "session/session.h"

/* ---- context.c -------------------------------------------------------- */

/* The context of a device that rdma_cm uses: opened at the first call, shared
 * by all ids, never closed. What cm_id->verbs points to. The number is that of any of
 * its ports. */
struct ibv_context *urdma_device_context(struct urdma_client *client, uint32_t device);

/* Of the first port: for what all have alike. */
const struct urdma_abi_device *urdma_context_info(const struct ibv_context *context);

/* ---- objects ----------------------------------------------------------------------- */

/*
 * pd->handle, cq->handle, qp->handle and mr->handle are urdmad's handles, and
 * qp->qp_num is the QPN on the wire. An object belongs to the connection of
 * its context: urdma_context_of(qp->context)->client.
 */
static inline uint32_t urdma_qp_handle(const struct ibv_qp *qp)
{
	return qp ? qp->handle : URDMA_ABI_NO_HANDLE;
}

/* What ibv_create_qp(3) asks for, as the extended call does. */
static inline struct ibv_qp_init_attr_ex urdma_extended_attr(const struct ibv_qp_init_attr *attr, struct ibv_pd *pd)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_context = attr->qp_context, .send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .srq = attr->srq,
		.cap = attr->cap, .qp_type = attr->qp_type, .sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd,
	};
}

/* ---- queues.c ---------------------------------------------------------------------- */

/* A queue pair and the completion queues, each with a channel, that are made for it. */
struct urdma_queues {
	/* Wanted: */
	struct ibv_qp_init_attr_ex *attr; /* its queues are set if they are made for it, cap is to what it holds */
	uint32_t send_entries, recv_entries; /* of completion queues; 0: attr has one */
	void *cq_context;
	unsigned moves; /* how many times it is modified, and how */
	struct urdma_move {
		struct ibv_qp_attr attr;
		int mask;
	} move[3];
	/* Made; NULL where there is none: */
	struct ibv_comp_channel *send_channel, *recv_channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
};

/* Makes all of it, not of type XRC_RECV, or nothing. */
int urdma_queues_create(struct ibv_context *context, struct urdma_queues *wanted);

/* Destroys what was made so, or one by one, as far as urdmad lets it; one queue may be
 * for both directions. False, and nothing is done, if something else makes use of it, and
 * it must be destroyed one by one. */
bool urdma_queues_destroy(struct urdma_queues *queues);

/*
 * Locks, outermost first: rdma_cm's own; a completion queue's lock, or a shared
 * receive queue's (lock.h; only ibv_resize_cq, ibv_modify_srq and, with URDMA_EXPLAIN, ibv_start_poll
 * hold one across a request); the mutex inside urdma_call*. A queue pair's locks are held across no other. The handle table's lock may be
 * held across find and the counting of an event, nothing else.
 */

#endif /* URDMA_INTERNAL_H */
