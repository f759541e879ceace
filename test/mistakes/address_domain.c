/* address_domain.c - sends a datagram with an address handle of another protection domain. */
#include "mistakes.h"

int main(void)
{
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR }, rts = { .qp_state = IBV_QPS_RTS };
	struct ibv_ah_attr to = { .port_num = 1, .is_global = 1, .grh.hop_limit = 1 };
	struct plan p = PLAN;
	struct side a;
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_port_attr port;
	struct ibv_pd *other;

	p.type = IBV_QPT_UD;
	a = side_new(p);
	to_init(&a);
	must(!ibv_modify_qp(a.qp, &rtr, IBV_QP_STATE) && !ibv_modify_qp(a.qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
	must((other = ibv_alloc_pd(context)) && !ibv_query_gid(context, 1, 0, &to.grh.dgid) && !ibv_query_port(context, 1, &port), "ibv_alloc_pd");
	to.dlid = port.lid;
	must((wr.wr.ud.ah = ibv_create_ah(other, &to)) != NULL, "ibv_create_ah");
	wr.wr.ud.remote_qpn = a.qp->qp_num;
	wr.wr.ud.remote_qkey = 0x11111111;
	sge = part(&a, 0, 32);
	ibv_post_send(a.qp, &wr, &bad);
	return 0;
}
