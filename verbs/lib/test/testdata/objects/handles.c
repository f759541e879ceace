/* handles.c - address handles belong to a protection domain. */
#include "objects.h"

static struct ibv_ah *new_handle(struct ibv_pd *of)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = gid, .hop_limit = 1 } };
	struct ibv_ah *ah = ibv_create_ah(of, &attr);

	CHECK(ah && ah->pd == of);
	return ah;
}

static struct ibv_qp *new_datagram_qp(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1, 0 }, .pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 5 };
	struct ibv_qp *qp = ibv_create_qp_ex(context, &init);

	CHECK(qp);
	CHECK_RETURNS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
	attr.qp_state = IBV_QPS_RTR;
	CHECK_RETURNS(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	CHECK_RETURNS(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	return qp;
}

static int send_to(struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
					.wr.ud = { .ah = ah, .remote_qpn = qp->qp_num, .remote_qkey = 5 } };

	return ibv_post_send(qp, &wr, &bad);
}

static int build_to(struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, ah, qp->qp_num, 5);
	ibv_wr_set_sge_list(ex, 0, NULL);
	return ibv_wr_complete(ex);
}

/* A domain with address handles can't be deallocated. Sending to a handle of another domain fails; a
 * handle of a parent domain belongs to its protection domain. */
void case_address_handles(void)
{
	struct ibv_pd *other = ibv_alloc_pd(context), *parent;
	struct ibv_parent_domain_init_attr attr = { .pd = pd };
	struct ibv_ah *foreign = new_handle(other), *ours = new_handle(pd), *parents;
	struct end e = { .cq = ibv_create_cq(context, 16, NULL, NULL, 0) };

	e.qp = new_datagram_qp(e.cq);
	CHECK((parent = ibv_alloc_parent_domain(context, &attr)));
	parents = new_handle(parent);
	CHECK_RETURNS(ibv_dealloc_pd(parent), 0);
	CHECK(send_to(e.qp, foreign) == EINVAL && build_to(e.qp, foreign) == EINVAL);
	CHECK(send_to(e.qp, NULL) == EINVAL && build_to(e.qp, NULL) == EINVAL);
	nothing(&e);
	CHECK_RETURNS(send_to(e.qp, ours), 0);
	completion(&e, IBV_WC_SUCCESS);
	CHECK_RETURNS(build_to(e.qp, parents), 0);
	completion(&e, IBV_WC_SUCCESS);

	CHECK_RETURNS(ibv_dealloc_pd(other), EBUSY);
	CHECK_RETURNS(ibv_destroy_ah(foreign), 0);
	CHECK_RETURNS(ibv_dealloc_pd(other), 0);
	CHECK_RETURNS(ibv_destroy_qp(e.qp), 0);
	CHECK_RETURNS(ibv_destroy_ah(parents), 0);
	CHECK_RETURNS(ibv_dealloc_pd(pd), EBUSY);
	CHECK_RETURNS(ibv_destroy_ah(ours), 0);
	CHECK_RETURNS(ibv_dealloc_pd(pd), 0);
	CHECK_RETURNS(ibv_destroy_cq(e.cq), 0);
}

/* The service level says which header is in a datagram's GRH on a port shown as roce. */
void case_datagram_header(void)
{
	const char *transport = getenv("URDMA_TRANSPORT");
	unsigned int want = transport && strcmp(transport, "roce") == 0 ? 0xA : 0;
	struct ibv_ah *ah = new_handle(pd);
	struct ibv_cq_init_attr_ex init = { .cqe = 16, .wc_flags = IBV_WC_EX_WITH_SL };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &init);
	struct ibv_poll_cq_attr first = { 0 };
	struct end e = { .cq = ibv_cq_ex_to_cq(cq), .memory = aligned_alloc(4096, LENGTH) };
	struct ibv_wc wc;

	CHECK((e.mr = ibv_reg_mr(pd, e.memory, LENGTH, IBV_ACCESS_LOCAL_WRITE)));
	e.qp = new_datagram_qp(e.cq);
	for (int round = 0; round < 2; round++) {
		receive(&e, 1, 40);
		CHECK_RETURNS(send_to(e.qp, ah), 0);
		if (round == 0) {
			do
				wc = completion(&e, IBV_WC_SUCCESS);
			while (wc.opcode != IBV_WC_RECV);
			CHECK(wc.sl == want);
			continue;
		}
		while (ibv_start_poll(cq, &first) == ENOENT)
			;
		while (ibv_wc_read_opcode(cq) != IBV_WC_RECV)
			while (ibv_next_poll(cq) == ENOENT)
				;
		CHECK(ibv_wc_read_sl(cq) == want);
		ibv_end_poll(cq);
	}
	CHECK(e.memory[20] == 0x45);
	CHECK_RETURNS(ibv_destroy_qp(e.qp), 0);
	CHECK_RETURNS(ibv_destroy_ah(ah), 0);
	CHECK_RETURNS(ibv_dereg_mr(e.mr), 0);
	CHECK_RETURNS(ibv_destroy_cq(e.cq), 0);
	free(e.memory);
}
