/* memory.h - the functions of this folder that verbs.h reaches through a context's
 * tables. */
#ifndef URDMA_MEMORY_H
#define URDMA_MEMORY_H

#include "../device/context.h"

struct ibv_mw *urdma_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int urdma_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int urdma_dealloc_mw(struct ibv_mw *mw);

struct ibv_pd *urdma_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);
/* Whether pd is a parent domain of a context. */
bool urdma_pd_is_parent(const struct ibv_pd *pd, const struct ibv_context *context);
struct ibv_td *urdma_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int urdma_dealloc_td(struct ibv_td *td);

#endif /* URDMA_MEMORY_H */
