/* mcast.c - queue pairs that receive datagrams sent to a multicast group. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "ah.h"

static int change(struct ibv_qp *qp, const union ibv_gid *gid, enum urdma_abi_type type)
{
	const struct urdma_abi_device *port = urdma_qp_of(qp)->port, *info = port ? port : urdma_context_of(qp->context)->info;
	struct urdma_abi_mcast request = { .qp = qp->handle, .group.family = info->addr.family };
	uint8_t group[16];

	if (!gid || qp->qp_type != IBV_QPT_UD || urdma_ah_group(info, gid, group))
		return EINVAL;
	if (request.group.family == AF_INET6)
		memcpy(request.group.addr, group, sizeof(group));
	else
		memcpy(request.group.addr, group + 12, 4);
	return URDMA_TELL(urdma_qp_of(qp)->client, type, &request);
}

/* The LID of a group is ignored: a subnet manager would assign it. ENOMEM: the queue pair is attached to
 * the maximum number of groups. */
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
