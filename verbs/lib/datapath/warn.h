/*
 * warn.h - mistakes that URDMA_WARN tells of. Only called with urdma_warn_wanted, and by
 * a thread that holds no lock but, where a comment says so, a completion queue's.
 */
#ifndef URDMA_WARN_H
#define URDMA_WARN_H

#include "objects.h"

/* Has a context's posts, polls and armings looked at. */
void urdma_warn_watch(struct ibv_context *context);
/* Looks at sends from one index of the ring on to another, and at a refusal, 0: none. */
void urdma_warn_sends(struct urdma_qp *qp, uint32_t from, uint32_t to, int status);
/* A failed completion was polled. The caller holds cq->lock. */
void urdma_warn_failed(struct urdma_cq *cq, uint32_t qp_num, uint32_t status);
/* A thread is about to wait for an event of the channel. */
void urdma_warn_waits(struct urdma_channel *channel);
/* It sleeps until there is one. */
void urdma_warn_sleeps(struct urdma_channel *channel);
/* A queue pair is about to be destroyed. */
void urdma_warn_destroys(struct urdma_qp *qp);
/* A queue pair is as urdmad says now; its attributes of mask are new. */
void urdma_warn_modified(struct urdma_qp *qp, const struct urdma_abi_query_qp_response *now, int mask);
/* A queue pair was made: a program may register memory for it. */
void urdma_warn_setup(void);
/* Memory was registered; it takes the fallback path for a reason, or for NULL doesn't. */
void urdma_warn_registers(const struct ibv_mr *mr, const char *fallback);
/* Memory is about to be deregistered. */
void urdma_warn_deregisters(struct urdma_client *client, const struct ibv_mr *mr);

#endif /* URDMA_WARN_H */
