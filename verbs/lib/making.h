/*
 * making.h - how channels, completion queues and queue pairs come into being and go,
 * step by step, so that one message asks urdmad for several (queues.c). An object is
 * allocated by new, asked for by request, filled in from urdmad's answer by made, and
 * ready for its users; discard gives it back at any time before, when urdmad has
 * destroyed it or never made it. end does when it was ready. NULL and errno, or an
 * errno value, for a failure.
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
/* With the rings' lock (session/rings.h). fd, -1 for none, is closed. */
int urdma_cq_made(struct urdma_cq *cq, const struct urdma_abi_cq_response *response, int fd);
void urdma_cq_ready(struct urdma_cq *cq);
/* Without the rings' lock. */
void urdma_cq_discard(struct urdma_cq *cq);
/* When its handle names it no longer. Waits until its events were acknowledged. */
void urdma_cq_end(struct urdma_cq *cq);
/* With cq->lock. Has urdmad send the event for what came before an arming, if it is
 * armed and none has told of it. */
void urdma_cq_tell_missed(struct urdma_cq *cq);

/* What all queue pairs have; the one without queues, of type XRC_RECV, has no more. */
struct urdma_qp *urdma_qp_bare(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr);
struct urdma_qp *urdma_qp_new(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr);
void urdma_qp_request(const struct urdma_qp *qp, const struct ibv_qp_init_attr_ex *attr, struct urdma_abi_create_qp *request);
/* As of a completion queue; cap: what it really holds. */
int urdma_qp_made(struct urdma_qp *qp, const struct urdma_abi_qp_response *response, int fd, struct ibv_qp_cap *cap);
void urdma_qp_ready(struct urdma_qp *qp, const struct ibv_qp_init_attr_ex *attr);
void urdma_qp_discard(struct urdma_qp *qp);
void urdma_qp_end(struct urdma_qp *qp);

/* qpattr.c: what ibv_modify_qp asks for. */
/* What the library keeps of what urdmad has made of a queue pair. */
void urdma_qp_modified(struct urdma_qp *qp, const struct urdma_abi_query_qp_response *now);
int urdma_qp_modification(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask, struct urdma_abi_modify_qp *request);

#endif /* URDMA_MAKING_H */
