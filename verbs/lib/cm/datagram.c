/*
 * datagram.c - ids of the port spaces RDMA_PS_UDP and RDMA_PS_IPOIB: their queue pairs are of type UD and
 * have no connection. rdma_connect asks which queue pair belongs to a port number; the event ESTABLISHED
 * contains the address handle attributes.
 */
#include <errno.h>
#include <string.h>

#include "cm.h"

#define HOP_LIMIT 64 /* the hop limit in packets of our ports */

bool cm_is_datagram(const struct rdma_cm_id *id)
{
	return id->qp_type == IBV_QPT_UD;
}

/* A queue pair of type UD can send and receive when rdma_create_qp(3) returns; others can only receive. */
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

void cm_path_to(const struct rdma_cm_id *id, const struct urdma_abi_addr *peer, struct ibv_ah_attr *attr)
{
	const struct urdma_abi_device *port = urdma_port_info(id->verbs, id->port_num);
	uint8_t gid[16];

	memset(attr, 0, sizeof(*attr));
	attr->port_num = id->port_num;
	if (peer->family != AF_INET && peer->family != AF_INET6)
		return;
	if (is_loopback(peer)) /* loopback addresses are not used in packets: use the port's own address */
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
		cm_path_to(id, &message->peer, &to->ah_attr);
}
