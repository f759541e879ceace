/* memory.h - functions of this folder that are put into a context's tables. */
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
struct ibv_mr *urdma_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
	unsigned int access);

struct ibv_mr *urdma_alloc_null_mr(struct ibv_pd *pd);

/* odp.c. Returns whether memory can be registered for on-demand paging. */
bool urdma_odp_supported(const struct urdma_client *client);
int urdma_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list,
		    uint32_t n);

struct urdma_mr {
	struct ibv_mr mr;
	struct urdma_region region;
	uint64_t iova;       /* as requested, for ibv_rereg_mr */
	unsigned int access; /* as requested, for ibv_rereg_mr */
	uint32_t *users;     /* the device memory's number of regions; NULL if it is ordinary memory */
	bool dmabuf;         /* registered by descriptor, without an address in the program */
};

/* mr.c, for dm.c: registers a region that counts in *users, which ibv_dereg_mr decrements. Peers and work
 * requests address it from 0. */
struct ibv_mr *urdma_reg_part(struct ibv_pd *pd, void *addr, size_t length, unsigned int access, uint32_t *users);

/* file.c: returns a descriptor, open for reading and writing, of a tmpfs or hugetlbfs file that the
 * program maps shared; -1 if there is none. opened: the caller must close it; otherwise it is the
 * program's. */
int urdma_file_find(const struct urdma_shared *file, bool *opened);
/* Checks a file or dma-buf that the program names, and populates its pages. EBADF if the descriptor is not
 * open, EINVAL if the range is empty or outside of it, EOPNOTSUPP if it can't be mapped for reading and writing. */
int urdma_file_lend(int fd, uint64_t offset, uint64_t length, bool writes, struct urdma_shared *file);
/* Populates every page of a region, so that urdmad allocates none. Returns false if that fails. */
bool urdma_file_fill(const struct urdma_region *region, bool writes);

/* Returns whether pd is a parent domain of a context. */
bool urdma_pd_is_parent(const struct ibv_pd *pd, const struct ibv_context *context);
struct ibv_td *urdma_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int urdma_dealloc_td(struct ibv_td *td);

#endif /* URDMA_MEMORY_H */
