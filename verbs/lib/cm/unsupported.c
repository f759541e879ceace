/*
 * unsupported.c - public functions of librdmacm that urdma refuses.
 *
 * They are defined so that none reaches the real library, which would misread
 * our objects. Multicast belongs to datagram queue pairs; it answers EOPNOTSUPP.
 */
#include <errno.h>

#include "cm.h"

#define REFUSED(declaration)                                                   \
	URDMA_EXPORT declaration                                               \
	{                                                                      \
		return cm_fail(EOPNOTSUPP);                                    \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ---- multicast ------------------------------------------------------------- */

REFUSED(int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context))
REFUSED(int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
				   void *context))
REFUSED(int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr))
