/*
 * unsupported.c - public functions for what urdmad has not: each answers with
 * the errno a provider without the feature gives. None may be left to the real
 * libibverbs, which would misread our objects.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

static void *refuse(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

/* ---- Ethernet addresses ---- */

URDMA_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
					     uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	(void)context, (void)attr, (void)eth_mac, (void)vid;
	return refuse() ? 0 : -1;
}

/* ---- objects of another process, device memory, DMA buffers ---- */

URDMA_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	(void)cmd_fd;
	return refuse();
}

URDMA_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	(void)context, (void)handle;
	return refuse();
}

URDMA_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	(void)pd;
}

URDMA_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	(void)pd, (void)handle;
	return refuse();
}

URDMA_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	(void)mr;
}

URDMA_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	(void)context, (void)handle;
	return refuse();
}

URDMA_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
	(void)dm;
}

URDMA_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
					      int fd, int access)
{
	(void)pd, (void)offset, (void)length, (void)iova, (void)fd, (void)access;
	return refuse();
}

/* ---- enhanced connection establishment ---- */

URDMA_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp, (void)ece;
	return urdma_status(EOPNOTSUPP);
}

URDMA_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	memset(ece, 0, sizeof(*ece));
	return urdma_status(EOPNOTSUPP);
}

/* ---- drivers: libraries that bring their own provider are ignored ---- */

URDMA_EXPORT void ibv_register_driver(const char *name, void *init);

void ibv_register_driver(const char *name, void *init)
{
	(void)name, (void)init;
}
