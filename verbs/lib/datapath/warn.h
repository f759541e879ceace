/*
 * warn.h - checks for common mistakes (URDMA_WARN). These functions are called only if urdma_warn_wanted
 * is set, and by a thread that holds no lock; where a comment says so, it may hold a completion queue's
 * lock.
 */
#ifndef URDMA_WARN_H
#define URDMA_WARN_H

#include "objects.h"

/* Enables the checks of posts, polls and armings on a context. */
void urdma_warn_watch(struct ibv_context *context);
/* Checks the sends with indices from from up to to, and the error of a refused one; 0: none was refused. */
void urdma_warn_sends(struct urdma_qp *qp, uint32_t from, uint32_t to, int status);
/* A failed completion was polled. The caller holds cq->lock. */
void urdma_warn_failed(struct urdma_cq *cq, uint32_t qp_num, uint32_t status);
/* A thread is about to wait for an event of the channel. */
void urdma_warn_waits(struct urdma_channel *channel);
/* Sleeps until the channel has an event, and looks for stuck sends meanwhile. */
void urdma_warn_sleeps(struct urdma_channel *channel);
/* A queue pair is about to be destroyed. */
void urdma_warn_destroys(struct urdma_qp *qp);
/* urdmad has answered with the queue pair's current state; the attributes in mask were changed. */
void urdma_warn_modified(struct urdma_qp *qp, const struct urdma_abi_query_qp_response *now, int mask);
/* A queue pair was made: a program may register memory for it. */
void urdma_warn_setup(void);
/* Memory was registered. fallback: why its data must be copied through /proc, or NULL if it is mapped. */
void urdma_warn_registers(const struct ibv_mr *mr, const char *fallback);
/* Memory is about to be deregistered. */
void urdma_warn_deregisters(struct urdma_client *client, const struct ibv_mr *mr);

#endif /* URDMA_WARN_H */
