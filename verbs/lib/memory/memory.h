/* memory.h - the functions of this folder that verbs.h reaches through a context's
 * tables. */
#ifndef URDMA_MEMORY_H
#define URDMA_MEMORY_H

#include "../device/context.h"
#include "../pages/pages.h"

struct ibv_mw *urdma_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int urdma_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int urdma_dealloc_mw(struct ibv_mw *mw);

struct ibv_pd *urdma_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);
struct ibv_dm *urdma_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int urdma_free_dm(struct ibv_dm *dm);
struct ibv_mr *urdma_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length, unsigned int access);

struct ibv_mr *urdma_alloc_null_mr(struct ibv_pd *pd);

/* mr.c, for dm.c: a region of something that counts its regions in users, which
 * ibv_dereg_mr lowers; peers and work requests see no address of it. */
struct ibv_mr *urdma_reg_part(struct ibv_pd *pd, void *addr, size_t length, unsigned int access, uint32_t *users);

/* file.c: a descriptor of a file that the program maps shared, on tmpfs or hugetlbfs and open for reading
 * and writing; -1: there is none that can be had. opened: the caller closes it, else it is the
 * program's. */
int urdma_file_find(const struct urdma_shared *file, bool *opened);
/* Looks at a file or dma-buf that the program names, and has its pages exist. EINVAL for what lies
 * outside, EOPNOTSUPP where nobody may map it for reading and writing. */
int urdma_file_lend(int fd, uint64_t offset, uint64_t length, bool writes, struct urdma_shared *file);
/* Has every page of a region exist, so that urdmad makes none; false: they can't. */
bool urdma_file_fill(const struct urdma_region *region, bool writes);

/* Whether pd is a parent domain of a context. */
bool urdma_pd_is_parent(const struct ibv_pd *pd, const struct ibv_context *context);
struct ibv_td *urdma_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int urdma_dealloc_td(struct ibv_td *td);

#endif /* URDMA_MEMORY_H */
