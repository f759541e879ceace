/* tables.h - functions of this folder that context.c puts into a context's tables. */
#ifndef URDMA_TABLES_H
#define URDMA_TABLES_H

#include "device/context.h"

struct ibv_cq_ex *urdma_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
struct ibv_srq *urdma_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
struct ibv_qp *urdma_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
int urdma_get_srq_num(struct ibv_srq *srq, uint32_t *number);
struct ibv_xrcd *urdma_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int urdma_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *urdma_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
struct ibv_flow *urdma_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int urdma_destroy_flow(struct ibv_flow *flow);
int urdma_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* xrc.c: used by srq.c and context.c. */
uint32_t urdma_xrcd_handle(const struct ibv_xrcd *xrcd);
struct ibv_qp *urdma_create_target(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/* context.c: called by the last reader of a context, or the thread that closes it. */
void urdma_context_leave(void *context);

#endif /* URDMA_TABLES_H */
