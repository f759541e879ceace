/* names.c - requests as the log calls them: by the call that makes them. */
#include <errno.h>

#include "../../abi/urdma_abi.h"
#include "client.h"

static const char *const names[] = {
	[URDMA_ABI_HELLO] = "connecting to urdmad",
	[URDMA_ABI_QUERY_DEVICE] = "ibv_query_device",
	[URDMA_ABI_OPEN_DEVICE] = "ibv_open_device",
	[URDMA_ABI_CLOSE_DEVICE] = "ibv_close_device",
	[URDMA_ABI_ALLOC_PD] = "ibv_alloc_pd",
	[URDMA_ABI_DEALLOC_PD] = "ibv_dealloc_pd",
	[URDMA_ABI_ADD_FILE] = "ibv_reg_mr (sharing pages)",
	[URDMA_ABI_REG_MR] = "ibv_reg_mr",
	[URDMA_ABI_DEREG_MR] = "ibv_dereg_mr",
	[URDMA_ABI_CREATE_CHANNEL] = "ibv_create_comp_channel",
	[URDMA_ABI_DESTROY_CHANNEL] = "ibv_destroy_comp_channel",
	[URDMA_ABI_CREATE_CQ] = "ibv_create_cq",
	[URDMA_ABI_RESIZE_CQ] = "ibv_resize_cq",
	[URDMA_ABI_DESTROY_CQ] = "ibv_destroy_cq",
	[URDMA_ABI_CREATE_QP] = "ibv_create_qp",
	[URDMA_ABI_MODIFY_QP] = "ibv_modify_qp",
	[URDMA_ABI_QUERY_QP] = "ibv_query_qp",
	[URDMA_ABI_DESTROY_QP] = "ibv_destroy_qp",
	[URDMA_ABI_CREATE_SRQ] = "ibv_create_srq",
	[URDMA_ABI_MODIFY_SRQ] = "ibv_modify_srq",
	[URDMA_ABI_QUERY_SRQ] = "ibv_query_srq",
	[URDMA_ABI_DESTROY_SRQ] = "ibv_destroy_srq",
	[URDMA_ABI_OPEN_XRCD] = "ibv_open_xrcd",
	[URDMA_ABI_CLOSE_XRCD] = "ibv_close_xrcd",
	[URDMA_ABI_OPEN_QP] = "ibv_open_qp",
	[URDMA_ABI_POOL_QUEUES] = "ibv_create_cq (sharing files)",
	[URDMA_ABI_BATCH] = "rdma_create_qp, rdma_destroy_qp",
	[URDMA_ABI_CM_CREATE_CHANNEL] = "rdma_create_event_channel",
	[URDMA_ABI_CM_DESTROY_CHANNEL] = "rdma_destroy_event_channel",
	[URDMA_ABI_CM_CREATE_ID] = "rdma_create_id",
	[URDMA_ABI_CM_DESTROY_ID] = "rdma_destroy_id",
	[URDMA_ABI_CM_BIND] = "rdma_bind_addr",
	[URDMA_ABI_CM_RESOLVE_ADDR] = "rdma_resolve_addr",
	[URDMA_ABI_CM_RESOLVE_ROUTE] = "rdma_resolve_route",
	[URDMA_ABI_CM_LISTEN] = "rdma_listen",
	[URDMA_ABI_CM_CONNECT] = "rdma_connect",
	[URDMA_ABI_CM_ACCEPT] = "rdma_accept",
	[URDMA_ABI_CM_REJECT] = "rdma_reject",
	[URDMA_ABI_CM_DISCONNECT] = "rdma_disconnect",
	[URDMA_ABI_CM_SET_OPTION] = "rdma_set_option",
	[URDMA_ABI_CM_MIGRATE_ID] = "rdma_migrate_id",
	[URDMA_ABI_ATTACH_MCAST] = "ibv_attach_mcast",
	[URDMA_ABI_DETACH_MCAST] = "ibv_detach_mcast",
	[URDMA_ABI_CM_WAKE_CHANNEL] = "rdma_migrate_id",
	[URDMA_ABI_ALLOC_MW] = "ibv_alloc_mw",
	[URDMA_ABI_DEALLOC_MW] = "ibv_dealloc_mw",
};

const char *urdma_request_name(enum urdma_abi_type type)
{
	if ((size_t)type < sizeof(names) / sizeof(*names) && names[type])
		return names[type];
	return "a request";
}

const char *urdma_request_advice(enum urdma_abi_type type, int status)
{
	if (type == URDMA_ABI_MODIFY_QP && status == EOPNOTSUPP)
		return "; queue pairs are connected by rdma_connect and rdma_accept alone (perftest: -R)";
	if (status == ENOMEM || status == EDQUOT)
		return "; urdmad's log names the limit";
	return "";
}
