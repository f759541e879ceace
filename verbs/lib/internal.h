/*
 * internal.h - functions of the libibverbs part (this folder and the folders in it) that the librdmacm
 * part (cm/) uses. session/session.h describes how errors are returned.
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

/* Returns the context of a device that rdma_cm uses, cm_id->verbs: opened at the first call, shared by all
 * ids, never closed. number may be that of any port of the device. */
struct ibv_context *urdma_device_context(struct urdma_client *client, uint32_t device);

/* Returns the first port's information, for properties that all ports share. */
const struct urdma_abi_device *urdma_context_info(const struct ibv_context *context);

/* ---- objects ----------------------------------------------------------------------- */

/*
 * pd->handle, cq->handle, qp->handle and mr->handle are urdmad's handles, and qp->qp_num is the QPN on the
 * wire. An object belongs to the session of its context: urdma_context_of(qp->context)->client.
 */
static inline uint32_t urdma_qp_handle(const struct ibv_qp *qp)
{
	return qp ? qp->handle : URDMA_ABI_NO_HANDLE;
}

/* Converts ibv_create_qp(3)'s attributes to those of the extended call. */
static inline struct ibv_qp_init_attr_ex urdma_extended_attr(const struct ibv_qp_init_attr *attr, struct ibv_pd *pd)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_context = attr->qp_context, .send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .srq = attr->srq,
		.cap = attr->cap, .qp_type = attr->qp_type, .sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd,
	};
}

/* ---- queues.c ---------------------------------------------------------------------- */

/* A queue pair and its completion queues with their channels, which are created together. */
struct urdma_queues {
	/* Input: */
	struct ibv_qp_init_attr_ex *attr; /* its queues are set if they are created here; cap becomes the actual sizes */
	uint32_t send_entries, recv_entries; /* entries of the completion queues to create; 0: attr names one */
	void *cq_context;
	unsigned moves; /* number of state changes, and their attributes */
	struct urdma_move {
		struct ibv_qp_attr attr;
		int mask;
	} move[3];
	/* Output; NULL if none was created: */
	struct ibv_comp_channel *send_channel, *recv_channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
};

/* Creates all of them, or none; not for type XRC_RECV. */
int urdma_queues_create(struct ibv_context *context, struct urdma_queues *wanted);

/* Destroys the objects created by urdma_queues_create or one by one, as far as urdmad allows; one queue
 * may be used for both directions. Returns false and does nothing if another object uses one of them: the
 * caller must then destroy them one by one. */
bool urdma_queues_destroy(struct urdma_queues *queues);

/*
 * Order of locks, outermost first: rdma_cm's own; a completion queue's or shared receive queue's lock
 * (lock.h), which only ibv_resize_cq, ibv_modify_srq and, with URDMA_EXPLAIN, ibv_start_poll hold across a
 * request; the mutex inside urdma_call*. No other lock is taken while a queue pair's locks are held. While
 * the handle table's lock is held, only a look-up and the counting of an event are done.
 */

#endif /* URDMA_INTERNAL_H */
