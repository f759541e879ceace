/*
 * option.c - options of an id, and what the other rdma_cm calls that tune a
 * connection mean on urdma's devices.
 */
#include <errno.h>
#include <string.h>

#include "cm.h"

/* The option's value, which must have exactly the size the option has. */
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
	return urdma_call(id->client, URDMA_ABI_CM_SET_OPTION, &request,
			  sizeof(request), NULL, 0);
}

URDMA_EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int optname,
				 void *optval, size_t optlen)
{
	if (level == RDMA_OPTION_ID)
		return cm_result(set_id_option(cm_id_of(id), optname, optval, optlen));
	/* Path records exist in InfiniBand subnets only. */
	if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
		return cm_fail(EOPNOTSUPP);
	return cm_fail(ENOSYS);
}

URDMA_EXPORT int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	if (!id->verbs)
		return cm_fail(EINVAL);
	/* urdmad connects both ends before data flows: nothing is left to do. */
	if (event != IBV_EVENT_COMM_EST &&
	    id->verbs->device->transport_type == IBV_TRANSPORT_IB)
		return cm_fail(EINVAL);
	return 0;
}

/*
 * What a program that made its queue pair itself passes to ibv_modify_qp.
 * Only INIT is its work; connect and accept find the queue pair by its number
 * and urdmad moves it on, so the later steps change nothing.
 */
URDMA_EXPORT int rdma_init_qp_attr(struct rdma_cm_id *id,
				   struct ibv_qp_attr *attr, int *mask)
{
	if (!id->verbs || !attr || !mask)
		return cm_fail(EINVAL);
	*mask = 0;
	if (attr->qp_state == IBV_QPS_RTR || attr->qp_state == IBV_QPS_RTS)
		return 0;
	if (attr->qp_state != IBV_QPS_INIT)
		return cm_fail(EINVAL);
	cm_init_attr(id, attr, mask);
	return 0;
}

/* Enhanced connection establishment needs devices that know each other's
 * options: what the program says is checked and kept from the wire, and what
 * the peer said is always nothing. */
URDMA_EXPORT int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece || !ece->vendor_id || ece->comp_mask)
		return cm_fail(EINVAL);
	return 0;
}

URDMA_EXPORT int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (id->qp || !ece)
		return cm_fail(EINVAL);
	memset(ece, 0, sizeof(*ece));
	return 0;
}
