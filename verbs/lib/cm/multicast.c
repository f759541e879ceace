/*
 * multicast.c - multicast groups that ids join. urdmad attaches the id's queue pair to the group; no
 * subnet manager has to be asked, so the event follows at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"

#define MULTICAST_QPN 0xffffffu
#define FIRST_GROUP_LID 0xC000u
#define HOP_LIMIT 64

/* A multicast group that an id has joined. */
struct cm_group {
	struct cm_group *next;
	struct urdma_abi_addr addr;
	void *context;
	bool attached; /* the id's queue pair is attached to it */
};

static bool same(const struct urdma_abi_addr *a, const struct urdma_abi_addr *b)
{
	return a->family == b->family && !memcmp(a->addr, b->addr, sizeof(a->addr));
}

/* IPv6: ff00::/8 (RFC 4291 section 2.7); IPv4: 224.0.0.0/4. */
static bool is_group(const struct urdma_abi_addr *addr)
{
	return addr->family == AF_INET6 ? addr->addr[0] == 0xff : addr->family == AF_INET && addr->addr[0] >> 4 == 0xe;
}

/* The group's GID: its IPv6 address or its mapped IPv4 address; an InfiniBand device has it below ff0e::. */
static void group_gid(const struct ibv_context *verbs, const struct urdma_abi_addr *group, union ibv_gid *gid)
{
	cm_address_gid(group, gid->raw);
	if (group->family == AF_INET && urdma_context_info(verbs)->link_layer == IBV_LINK_LAYER_INFINIBAND) {
		gid->raw[0] = 0xff;
		gid->raw[1] = 0x0e;
	}
}

static uint16_t group_lid(const struct ibv_context *verbs, const struct urdma_abi_addr *group)
{
	const uint8_t *low = group->addr + (group->family == AF_INET6 ? 14 : 2);

	if (urdma_context_info(verbs)->link_layer != IBV_LINK_LAYER_INFINIBAND)
		return 0;
	return (uint16_t)(FIRST_GROUP_LID | (low[0] & 0x3f) << 8 | low[1]);
}

void cm_group_joined(const struct rdma_cm_id *id, const struct urdma_abi_cm_event *message, struct rdma_ud_param *to)
{
	void *context;

	memcpy(&context, message->param.private_data, sizeof(context));
	to->private_data = context;
	to->private_data_len = 0;
	to->ah_attr.port_num = id->port_num;
	to->ah_attr.is_global = 1;
	to->ah_attr.dlid = group_lid(id->verbs, &message->peer);
	to->ah_attr.grh.hop_limit = HOP_LIMIT;
	group_gid(id->verbs, &message->peer, &to->ah_attr.grh.dgid);
}

static int attach(struct rdma_cm_id *id, struct cm_group *group)
{
	union ibv_gid gid;
	int status;

	group_gid(id->verbs, &group->addr, &gid);
	status = ibv_attach_mcast(id->qp, &gid, 0);
	group->attached = !status;
	return status;
}

static void detach(struct rdma_cm_id *id, struct cm_group *group)
{
	union ibv_gid gid;

	if (!group->attached)
		return;
	group_gid(id->verbs, &group->addr, &gid);
	ibv_detach_mcast(id->qp, &gid, 0);
	group->attached = false;
}

/* Makes urdmad send the MULTICAST_JOIN event. */
static void announce(struct cm_id *id, const struct cm_group *group)
{
	struct urdma_abi_cm_event message = {
		.event = RDMA_CM_EVENT_MULTICAST_JOIN, .id = id->handle, .device = id->device, .peer = group->addr,
		.param = { .qp_num = MULTICAST_QPN, .qkey = RDMA_UDP_QKEY, .private_data_len = sizeof(group->context) },
	};
	struct cm_channel *channel = cm_channel_of(id->public.channel);
	int cancel;

	memcpy(message.param.private_data, &group->context, sizeof(group->context));
	cm_lock(&cancel);
	cm_channel_push(channel, &message);
	cm_unlock(cancel);
	cm_channel_wake(channel);
}

static int join(struct cm_id *id, const struct sockaddr *addr, bool receives, void *context)
{
	struct cm_group *group;
	int status, cancel;

	if (!addr || !id->public.verbs || !cm_is_datagram(&id->public))
		return EINVAL;
	group = calloc(1, sizeof(*group));
	if (!group)
		return ENOMEM;
	group->context = context;
	status = cm_address_read(addr, &group->addr);
	if (!status && (!is_group(&group->addr) ||
		group->addr.family != urdma_port_info(id->public.verbs, id->public.port_num)->addr.family))
		status = EINVAL; /* a port can only join groups of its own address family */
	if (!status && receives && id->public.qp)
		status = attach(&id->public, group);
	if (status) {
		free(group);
		return status;
	}
	group->addr.port_be = 0;
	group->addr.scope_id = 0;
	cm_lock(&cancel);
	group->next = id->groups;
	id->groups = group;
	cm_unlock(cancel);
	announce(id, group);
	return 0;
}

URDMA_EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *public, struct rdma_cm_join_mc_attr_ex *attr,
					void *context)
{
	struct cm_id *id = cm_id_of(public);
	int status;

	if (attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		return urdma_fail(ENOTSUP);
	if (!(attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) ||
	    !(attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS) || attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return urdma_fail(EINVAL);
	status = join(id, attr->addr, attr->join_flags == RDMA_MC_JOIN_FLAG_FULLMEMBER, context);
	return cm_complete(id, status);
}

URDMA_EXPORT int rdma_join_multicast(struct rdma_cm_id *public, struct sockaddr *addr, void *context)
{
	struct cm_id *id = cm_id_of(public);
	int status = join(id, addr, true, context);

	return cm_complete(id, status);
}

URDMA_EXPORT int rdma_leave_multicast(struct rdma_cm_id *public, struct sockaddr *addr)
{
	struct cm_id *id = cm_id_of(public);
	struct cm_group **at, *group;
	struct urdma_abi_addr want;
	int cancel, status = addr ? cm_address_read(addr, &want) : EINVAL;

	if (status)
		return urdma_fail(status);
	cm_lock(&cancel);
	for (at = &id->groups; *at && !same(&(*at)->addr, &want); at = &(*at)->next)
		;
	group = *at;
	if (group)
		*at = group->next;
	cm_unlock(cancel);
	if (!group)
		return urdma_fail(EADDRNOTAVAIL);
	detach(public, group);
	free(group);
	return 0;
}

void cm_groups_detach(struct rdma_cm_id *public)
{
	for (struct cm_group *group = cm_id_of(public)->groups; group; group = group->next)
		detach(public, group);
}

void cm_groups_free(struct cm_id *id)
{
	struct cm_group *group, *next;

	for (group = id->groups; group; group = next) {
		next = group->next;
		free(group);
	}
}
