/*
 * datagram.c - ids of the port spaces RDMA_PS_UDP and RDMA_PS_IPOIB: their queue
 * pairs are of type UD and have no connection. rdma_connect asks which queue pair
 * is behind a port number, and ESTABLISHED says how to send to it.
 */
#include <errno.h>
#include <string.h>

#include "cm.h"

#define HOP_LIMIT 64 /* as packets leave the port */

bool cm_is_datagram(const struct rdma_cm_id *id)
{
	return id->qp_type == IBV_QPT_UD;
}

/* One of type UD sends and receives as soon as it is made (rdma_create_qp(3)), others
 * take receives. */
void cm_first_moves(const struct rdma_cm_id *id, struct urdma_queues *wanted)
{
	struct urdma_move *to = wanted->move;

	cm_init_attr(id, &to[0].attr, &to[0].mask);
	wanted->moves = 1;
	if (!cm_is_datagram(id))
		return;
	to[1] = to[2] = (struct urdma_move){ .attr = to[0].attr, .mask = IBV_QP_STATE };
	to[1].attr.qp_state = IBV_QPS_RTR;
	to[2].attr.qp_state = IBV_QPS_RTS;
	to[2].mask |= IBV_QP_SQ_PSN;
	wanted->moves = 3;
}

static bool is_loopback(const struct urdma_abi_addr *a)
{
	static const uint8_t ipv6[16] = { [15] = 1 };

	return a->family == AF_INET ? a->addr[0] == 127 : !memcmp(a->addr, ipv6, sizeof(ipv6));
}

/* The path to an address of ours, as devices shown so have it: by LID or by GID. */
static void path_to(const struct rdma_cm_id *id, const struct urdma_abi_addr *peer, struct ibv_ah_attr *attr)
{
	const struct urdma_abi_device *port = urdma_port_info(id->verbs, id->port_num);
	uint8_t gid[16];

	memset(attr, 0, sizeof(*attr));
	attr->port_num = id->port_num;
	if (peer->family != AF_INET && peer->family != AF_INET6)
		return;
	if (is_loopback(peer)) /* no packet goes there: the port's own address stands for it */
		peer = &port->addr;
	cm_address_gid(peer, gid);
	if (port->link_layer == IBV_LINK_LAYER_INFINIBAND) {
		attr->dlid = (uint16_t)(gid[14] << 8 | gid[15]);
		return;
	}
	attr->is_global = 1;
	attr->grh.hop_limit = HOP_LIMIT;
	memcpy(attr->grh.dgid.raw, gid, sizeof(gid));
}

void cm_datagram_param(const struct rdma_cm_id *id, const struct urdma_abi_cm_event *message, struct rdma_ud_param *to)
{
	to->qp_num = message->param.qp_num;
	to->qkey = message->param.qkey;
	if (message->event == RDMA_CM_EVENT_ESTABLISHED && id->verbs)
		path_to(id, &message->peer, &to->ah_attr);
}
