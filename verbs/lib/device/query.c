/* query.c - the attributes of a device and its ports. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "context.h"

#undef ibv_query_port

#define URDMA_PKEYS 1u /* entries of a port's P_Key table */

#define PAGE_SIZES 0xfffff000u /* any power of two from 4 KiB */
#define NO_MORE_THAN_INT(x) ((x) > 0x7fffffffu ? 0x7fffffff : (int)(x))

static void fill_device(const struct urdma_context *c, struct ibv_device_attr *a)
{
	const struct urdma_abi_device *i = c->info;

	memset(a, 0, sizeof(*a));
	memcpy(a->fw_ver, i->fw_ver, sizeof(i->fw_ver));
	a->node_guid = a->sys_image_guid = i->node_guid_be;
	a->max_mr_size = i->max_mr_size;
	a->page_size_cap = PAGE_SIZES;
	a->vendor_id = i->vendor_id;
	a->vendor_part_id = i->vendor_part_id;
	a->hw_ver = i->hw_ver;
	a->max_qp = NO_MORE_THAN_INT(i->max_qp);
	a->max_qp_wr = NO_MORE_THAN_INT(i->max_qp_wr);
	a->max_sge = NO_MORE_THAN_INT(i->max_sge);
	a->max_sge_rd = NO_MORE_THAN_INT(i->max_sge_rd);
	a->max_cq = NO_MORE_THAN_INT(i->max_cq);
	a->max_cqe = NO_MORE_THAN_INT(i->max_cqe);
	a->max_mr = NO_MORE_THAN_INT(i->max_mr);
	a->max_pd = NO_MORE_THAN_INT(i->max_pd);
	a->max_qp_rd_atom = a->max_qp_init_rd_atom = NO_MORE_THAN_INT(i->max_rd_atom);
	a->max_res_rd_atom = NO_MORE_THAN_INT((uint64_t)i->max_rd_atom * i->max_qp);
	a->atomic_cap = IBV_ATOMIC_HCA; /* atomic with the program's own accesses only if the memory is shared */
	a->device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
			      IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC |
			      IBV_DEVICE_SRQ_RESIZE;
	if (i->raw_packets != URDMA_ABI_RAW_OFF)
		a->device_cap_flags |= IBV_DEVICE_MANAGED_FLOW_STEERING;
	a->max_mw = NO_MORE_THAN_INT(i->max_mw);
	a->max_srq = NO_MORE_THAN_INT(i->max_srq);
	a->max_srq_wr = NO_MORE_THAN_INT(i->max_srq_wr);
	a->max_srq_sge = NO_MORE_THAN_INT(i->max_srq_sge);
	a->max_mcast_grp = 64; /* MaxGroups in urdmad/core/datagram, for each queue pair */
	a->max_mcast_qp_attach = a->max_qp;
	a->max_total_mcast_qp_attach = NO_MORE_THAN_INT((uint64_t)64 * i->max_qp);
	a->max_ah = INT32_MAX; /* address handles use only the program's memory */
	a->max_pkeys = URDMA_PKEYS;
	a->phys_port_cnt = (uint8_t)i->num_ports;
}

URDMA_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	fill_device(urdma_context_of(context), attr);
	return 0;
}

/* No IBV_ODP_SUPPORT_ATOMIC: the kernel reads and writes a page for urdmad, but has no atomic operation. */
static void fill_odp(struct ibv_device_attr_ex *a)
{
	const uint32_t datagrams = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
	const uint32_t writes = datagrams | IBV_ODP_SUPPORT_WRITE, reads = writes | IBV_ODP_SUPPORT_READ;

	a->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	a->odp_caps.per_transport_caps.rc_odp_caps = reads;
	a->odp_caps.per_transport_caps.uc_odp_caps = writes;
	a->odp_caps.per_transport_caps.ud_odp_caps = datagrams;
	a->xrc_odp_caps = reads & ~(uint32_t)IBV_ODP_SUPPORT_RECV; /* receives are of shared queues only */
}

/* size is the structure's size when the caller was compiled: that much is filled in, including zeros. */
int urdma_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex all;

	if (input && input->comp_mask)
		return urdma_status(EINVAL);
	if (size < sizeof(struct ibv_device_attr))
		return urdma_status(EINVAL);
	memset(&all, 0, sizeof(all));
	fill_device(urdma_context_of(context), &all.orig_attr);
	all.completion_timestamp_mask = UINT64_MAX; /* nanoseconds of CLOCK_MONOTONIC */
	all.hca_core_clock = 1000000;               /* kHz */
	all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
	all.phys_port_cnt_ex = urdma_context_of(context)->info->num_ports;
	all.max_dm_size = URDMA_MAX_DM;
	if (urdma_context_of(context)->on_demand)
		fill_odp(&all);
	memset(attr, 0, size);
	memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

int urdma_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	(void)context;
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return urdma_status(EINVAL);
	if (values->comp_mask && clock_gettime(CLOCK_MONOTONIC, &values->raw_clock))
		return errno;
	return 0;
}

/* Returns the largest of verbs' five MTUs that fits the port (docs/WIRE.md chapter 10). The port's own MTU
 * may lie between two of them. */
static enum ibv_mtu mtu_number(uint32_t bytes)
{
	if (bytes >= 4096)
		return IBV_MTU_4096;
	if (bytes >= 2048)
		return IBV_MTU_2048;
	if (bytes >= 1024)
		return IBV_MTU_1024;
	return bytes >= 512 ? IBV_MTU_512 : IBV_MTU_256;
}

static void fill_port(const struct urdma_abi_device *i, struct ibv_port_attr *a)
{
	memset(a, 0, sizeof(*a));
	a->state = i->link_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	a->max_mtu = a->active_mtu = mtu_number(i->max_datagram);
	a->gid_tbl_len = (int)urdma_gids(i);
	a->port_cap_flags = IBV_PORT_CM_SUP;
	if (i->gid_type == IBV_GID_TYPE_ROCE_V2)
		a->port_cap_flags |= IBV_PORT_IP_BASED_GIDS;
	a->max_msg_sz = i->max_msg > UINT32_MAX ? UINT32_MAX : (uint32_t)i->max_msg;
	a->pkey_tbl_len = URDMA_PKEYS;
	a->lid = (uint16_t)i->lid;
	a->sm_lid = a->lid;
	a->max_vl_num = 1;
	a->active_width = 2;  /* 4X */
	a->active_speed = 4;  /* 10 Gb/s a lane: the actual speed is unknown; memif easily carries this much */
	a->phys_state = i->link_up ? 5 /* LinkUp */ : 3 /* Disabled */;
	a->link_layer = (uint8_t)i->link_layer;
}

int urdma_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	struct urdma_abi_device now;
	struct ibv_port_attr all;
	int status;

	if (!urdma_port_info(context, port))
		return urdma_status(EINVAL);
	status = urdma_port_ask(urdma_context_of(context), port, &now);
	if (status)
		return status;
	fill_port(&now, &all);
	memset(attr, 0, size);
	memcpy(attr, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

/* Programs compiled before port_cap_flags2 existed pass a shorter structure. */
URDMA_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return urdma_query_port(context, port, (struct ibv_port_attr *)attr,
				offsetof(struct ibv_port_attr, port_cap_flags2));
}

URDMA_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	if (!urdma_port_info(context, port) || index < 0 || index >= (int)URDMA_PKEYS)
		return urdma_fail(EINVAL);
	*pkey = htons(0xffff); /* the default partition, full member */
	return 0;
}

URDMA_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	__be16 entry;

	if (!ibv_query_pkey(context, port, 0, &entry) && entry == pkey)
		return 0;
	return urdma_fail(EINVAL);
}
