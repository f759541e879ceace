/*
 * option.c - options of an id, and other rdma_cm calls that tune a connection: their meaning on urdma's
 * devices.
 */
#include <errno.h>
#include <string.h>

#include "cm.h"

/* Reads the option's value; its size must be exactly the expected one. */
static int read_value(const void *from, size_t length, size_t expected,
		      uint32_t *value)
{
	uint8_t byte;
	int number;

	if (!from || length != expected)
		return EINVAL;
	if (expected == sizeof(byte)) {
		memcpy(&byte, from, sizeof(byte));
		*value = byte;
	} else {
		memcpy(&number, from, sizeof(number));
		*value = number != 0;
	}
	return 0;
}

static int set_id_option(struct cm_id *id, int optname, const void *optval,
			 size_t optlen)
{
	bool is_byte = optname == RDMA_OPTION_ID_TOS ||
		       optname == RDMA_OPTION_ID_ACK_TIMEOUT;
	struct urdma_abi_cm_set_option request = {
		.id = id->handle,
		.level = RDMA_OPTION_ID,
		.optname = (uint32_t)optname,
	};
	int error;

	if (optname < RDMA_OPTION_ID_TOS || optname > RDMA_OPTION_ID_ACK_TIMEOUT)
		return ENOSYS;
	error = read_value(optval, optlen, is_byte ? sizeof(uint8_t) : sizeof(int),
			   &request.value);
	if (error)
		return error;
	error = URDMA_TELL(id->client, URDMA_ABI_CM_SET_OPTION, &request);
	if (!error && optname == RDMA_OPTION_ID_ACK_TIMEOUT)
		id->ack_timeout = (uint8_t)request.value;
	return error;
}

/* Path records come from a subnet manager; here the route is the next hop for an address. So a program's
 * own path record is accepted without effect and, as in the kernel, causes the event that resolving the
 * route causes. */
static int set_path(struct cm_id *id, const struct ibv_path_data *path, size_t length)
{
	const uint32_t whole = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;

	if (!path || !length || length % sizeof(*path))
		return EINVAL;
	for (size_t i = 0; i < length / sizeof(*path); i++)
		if ((path[i].flags & whole) == whole)
			return cm_id_call(id, URDMA_ABI_CM_RESOLVE_ROUTE, 0);
	return EINVAL;
}

URDMA_EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int optname,
				 void *optval, size_t optlen)
{
	if (level == RDMA_OPTION_ID)
		return cm_result(set_id_option(cm_id_of(id), optname, optval, optlen));
	if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
		return cm_result(set_path(cm_id_of(id), optval, optlen));
	return urdma_fail(ENOSYS);
}

URDMA_EXPORT int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	if (!id->verbs)
		return urdma_fail(EINVAL);
	/* urdmad connects both ends before data is transferred, so nothing is left to do. */
	if (event != IBV_EVENT_COMM_EST && cm_uses_ibcm(id))
		return urdma_fail(EINVAL);
	return 0;
}

/* Fills in the path to the peer. Its GID is its address (IPv4 is mapped), however the device is shown. */
static void fill_path(const struct rdma_cm_id *id, struct ibv_qp_attr *attr)
{
	struct urdma_abi_addr to;

	attr->ah_attr = (struct ibv_ah_attr){ .is_global = 1, .port_num = id->port_num, .grh.hop_limit = 64 };
	cm_address_read(&id->route.addr.dst_addr, &to);
	if (cm_is_datagram(id)) {
		cm_path_to(id, &to, &attr->ah_attr);
		return;
	}
	cm_address_gid(&to, attr->ah_attr.grh.dgid.raw);
}

static int fill_rtr(const struct cm_id *id, struct ibv_qp_attr *attr)
{
	struct ibv_port_attr port;

	if (ibv_query_port(id->public.verbs, id->public.port_num, &port))
		return errno;
	fill_path(&id->public, attr);
	attr->path_mtu = port.active_mtu;
	attr->dest_qp_num = id->peer_qp_num;
	attr->rq_psn = 0;
	attr->max_dest_rd_atomic = id->responder_resources;
	attr->min_rnr_timer = 0;
	return 0;
}

static void fill_rts(const struct cm_id *id, struct ibv_qp_attr *attr)
{
	attr->timeout = id->ack_timeout;
	attr->retry_cnt = attr->rnr_retry = 7;
	attr->sq_psn = 0;
	attr->max_rd_atomic = id->initiator_depth;
}

/* The attributes that moving an InfiniBand queue pair to RTR and RTS requires. */
#define MASK_RTR (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define MASK_RTS (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
		  IBV_QP_MAX_QP_RD_ATOMIC)

/*
 * Returns the attributes that a program with a queue pair of its own passes to ibv_modify_qp. urdmad finds
 * that queue pair by its number in connect or accept and moves it through its states, so moving it to RTR
 * and RTS here changes nothing. The accepting side calls this before urdmad knows the queue pair, so the
 * mask is empty; it is also empty on an iWARP device.
 */
static bool later_steps(struct rdma_cm_id *id)
{
	return cm_id_of(id)->active && cm_id_of(id)->connected && cm_uses_ibcm(id);
}

URDMA_EXPORT int rdma_init_qp_attr(struct rdma_cm_id *id,
				   struct ibv_qp_attr *attr, int *mask)
{
	if (!id->verbs || !attr || !mask)
		return urdma_fail(EINVAL);
	*mask = 0;
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		cm_init_attr(id, attr, mask);
		return 0;
	case IBV_QPS_RTR:
		if (later_steps(id))
			*mask = MASK_RTR;
		return cm_result(fill_rtr(cm_id_of(id), attr));
	case IBV_QPS_RTS:
		if (later_steps(id))
			*mask = MASK_RTS;
		fill_rts(cm_id_of(id), attr);
		return 0;
	default:
		return urdma_fail(EINVAL);
	}
}

/* Enhanced connection establishment lets devices exchange their options. The program's options are checked
 * and not sent; the peer's options are always empty. */
URDMA_EXPORT int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece || !ece->vendor_id || ece->comp_mask)
		return urdma_fail(EINVAL);
	return 0;
}

URDMA_EXPORT int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (id->qp || !ece)
		return urdma_fail(EINVAL);
	memset(ece, 0, sizeof(*ece));
	return 0;
}
