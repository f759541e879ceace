/*
 * making.h - creation of channels, completion queues and queue pairs in steps, so that one message to
 * urdmad can create several (queues.c). "new" allocates the object, "request" adds its creation to the
 * message, "made" fills it in from the response; then it is ready for use. "discard" frees an object that
 * is not ready, when urdmad has destroyed or not created it; "end" frees one that was ready. Failure: NULL
 * with errno set, or an errno value.
 */
#ifndef URDMA_MAKING_H
#define URDMA_MAKING_H

#include "device/context.h"

struct urdma_channel *urdma_channel_new(struct ibv_context *context);
void urdma_channel_discard(struct urdma_channel *channel);
/* After urdma_readers_abandon. */
void urdma_channel_end(struct urdma_channel *channel);

struct urdma_cq *urdma_cq_new(struct ibv_context *context, uint32_t cqe, void *cq_context,
			      struct ibv_comp_channel *channel, uint32_t vector);
void urdma_cq_request(const struct urdma_cq *cq, uint32_t cqe, uint32_t vector, struct urdma_abi_create_cq *request);
/* With the rings' lock held (session/rings.h). Closes fd, unless it is -1. */
int urdma_cq_made(struct urdma_cq *cq, const struct urdma_abi_cq_response *response, int fd);
void urdma_cq_ready(struct urdma_cq *cq);
/* Without the rings' lock. */
void urdma_cq_discard(struct urdma_cq *cq);
/* After its handle was removed from the table. Waits until its events were acknowledged. */
void urdma_cq_end(struct urdma_cq *cq);
/* With cq->lock held. If the queue is armed and no event was sent for completions from before the arming,
 * makes urdmad send one. */
void urdma_cq_tell_missed(struct urdma_cq *cq);

/* Allocates the part common to all queue pairs; a queue pair of type XRC_RECV, without queues, has only
 * this. */
struct urdma_qp *urdma_qp_bare(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr);
struct urdma_qp *urdma_qp_new(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr);
void urdma_qp_request(const struct urdma_qp *qp, const struct ibv_qp_init_attr_ex *attr,
	struct urdma_abi_create_qp *request);
/* Like urdma_cq_made. cap: the actual sizes. */
int urdma_qp_made(struct urdma_qp *qp, const struct urdma_abi_qp_response *response, int fd, struct ibv_qp_cap *cap);
void urdma_qp_ready(struct urdma_qp *qp, const struct ibv_qp_init_attr_ex *attr);
void urdma_qp_discard(struct urdma_qp *qp);
void urdma_qp_end(struct urdma_qp *qp);

/* qpattr.c: what ibv_modify_qp asks for. */
/* Returns the length in bytes of the longest message of a type of queue pair at a port. */
uint64_t urdma_qp_max_message(enum ibv_qp_type type, const struct urdma_abi_device *port);
/* Updates the library's copy of a queue pair after urdmad has modified it. */
void urdma_qp_modified(struct urdma_qp *qp, const struct urdma_abi_query_qp_response *now);
int urdma_qp_modification(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask,
	struct urdma_abi_modify_qp *request);

#endif /* URDMA_MAKING_H */
