/* mcast.c - queue pairs that receive what is sent to a group. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "ah.h"

static int change(struct ibv_qp *qp, const union ibv_gid *gid, enum urdma_abi_type type)
{
	struct urdma_abi_mcast request = { .qp = qp->handle, .group.family = AF_INET };

	if (!gid || qp->qp_type != IBV_QPT_UD || urdma_ah_group(gid, request.group.addr))
		return EINVAL;
	return urdma_call(urdma_qp_of(qp)->client, type, &request, sizeof(request), NULL, 0);
}

/* The LID of a group is the subnet's to give, and means nothing here. ENOMEM: the
 * queue pair is attached to as many groups as it can be. */
URDMA_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return urdma_status(change(qp, gid, URDMA_ABI_ATTACH_MCAST));
}

URDMA_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)lid;
	return urdma_status(change(qp, gid, URDMA_ABI_DETACH_MCAST));
}
