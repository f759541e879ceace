/* xrc.c - XRC domains, their shared receive queues and target queue pairs. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "objects.h"

static struct ibv_xrcd *open_domain(int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd,
		.oflags = oflags };

	return ibv_open_xrcd(context, &attr);
}

static int new_file(void)
{
	char path[] = "/tmp/urdma-xrc-XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	unlink(path);
	return fd;
}

static struct ibv_srq *new_srq(struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 8, .max_sge = 1 }, .srq_type = IBV_SRQT_XRC, .pd = pd, .xrcd = xrcd, .cq = cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
	};

	return ibv_create_srq_ex(context, &attr);
}

static struct ibv_qp *new_target(struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd };

	return ibv_create_qp_ex(context, &attr);
}

static struct ibv_qp *open_target(struct ibv_xrcd *xrcd, uint32_t number)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE, .qp_num = number, .xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return ibv_open_qp(context, &attr);
}

static void initiator(struct end *e)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .pd = pd,
		.cap = { .max_send_wr = 8, .max_send_sge = 1 },
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	};

	CHECK((attr.send_cq = e->cq = ibv_create_cq(context, 16, NULL, NULL, 0)));
	CHECK((e->memory = aligned_alloc(4096, LENGTH)));
	memset(e->memory, 'x', LENGTH);
	CHECK((e->mr = ibv_reg_mr(pd, e->memory, LENGTH, IBV_ACCESS_LOCAL_WRITE)));
	CHECK((e->qp = ibv_create_qp_ex(context, &attr)));
}

static void send_to(struct end *from, uint32_t number)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = request(from, IBV_WR_SEND, 1000, &sge);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(from->qp);

	wr.qp_type.xrc.remote_srqn = number;
	CHECK_RETURNS(post(from, &wr), 0);
	completion(from, IBV_WC_SUCCESS);
	ibv_wr_start(ex);
	ex->wr_id = 5;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(ex, 77);
	ibv_wr_set_xrc_srqn(ex, number);
	ibv_wr_set_sge(ex, from->mr->lkey, (uintptr_t)from->memory, 500);
	CHECK_RETURNS(ibv_wr_complete(ex), 0);
	completion(from, IBV_WC_SUCCESS);
}

/* A target queue pair has no queues: posting to it fails. */
static void refuse_posts(struct ibv_qp *target)
{
	static const enum ibv_qp_state states[] = { IBV_QPS_RTS, IBV_QPS_ERR };
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = 1 };
	struct ibv_send_wr *bad;
	struct ibv_mw_bind bind = { .wr_id = 1 };
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);

	CHECK(mw);
	CHECK_RETURNS(ibv_post_recv(target, &recv, &bad_recv), EINVAL);
	CHECK(bad_recv == &recv);
	for (unsigned int i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (states[i] == IBV_QPS_RTS)
			to_rts(target);
		else
			CHECK_RETURNS(ibv_modify_qp(target, &(struct ibv_qp_attr){ .qp_state = states[i] }, IBV_QP_STATE), 0);
		CHECK_RETURNS(ibv_post_recv(target, &recv, &bad_recv), EINVAL);
		for (int opcode = IBV_WR_RDMA_WRITE; opcode <= IBV_WR_SEND_WITH_INV; opcode++) {
			struct ibv_send_wr wr = { .opcode = (enum ibv_wr_opcode)opcode, .bind_mw.mw = mw };

			CHECK_RETURNS(ibv_post_send(target, &wr, &bad), EINVAL);
			CHECK(bad == &wr);
		}
		CHECK_RETURNS(ibv_bind_mw(target, mw, &bind), EINVAL);
	}
	CHECK(!ibv_qp_to_qp_ex(target));
	CHECK_RETURNS(ibv_dealloc_mw(mw), 0);
}

/* Two handles of one domain, opened by a file; messages for a queue of one through a queue pair made with
 * the other. */
void case_xrc(void)
{
	int fd = new_file();
	struct ibv_xrcd *one = open_domain(fd, O_CREAT), *two = open_domain(fd, 0);
	struct end server = { 0 }, client;
	struct ibv_srq *srq;
	struct ibv_qp *target, *second;
	struct ibv_sge sge;
	struct ibv_recv_wr *bad, wr = { .wr_id = 9, .sg_list = &sge, .num_sge = 1 };
	struct ibv_wc wc;
	uint32_t number = 0;

	CHECK(one && two);
	close(fd);
	CHECK((server.cq = ibv_create_cq(context, 16, NULL, NULL, 0)));
	CHECK((server.memory = aligned_alloc(4096, LENGTH)));
	memset(server.memory, 0, LENGTH);
	CHECK((server.mr = ibv_reg_mr(pd, server.memory, LENGTH, IBV_ACCESS_LOCAL_WRITE)));
	CHECK((srq = new_srq(one, server.cq)));
	CHECK_RETURNS(ibv_get_srq_num(srq, &number), 0);
	CHECK(number);
	CHECK((target = new_target(two)));
	CHECK((second = open_target(one, target->qp_num)));
	CHECK(second->qp_num == target->qp_num);
	initiator(&client);
	to_init(target, IBV_ACCESS_LOCAL_WRITE);
	to_init(client.qp, IBV_ACCESS_LOCAL_WRITE);
	to_rtr(target, client.qp->qp_num);
	to_rtr(client.qp, target->qp_num);
	to_rts(client.qp);
	CHECK_RETURNS(ibv_destroy_qp(target), 0); /* the second reference keeps it */
	sge = (struct ibv_sge){ (uintptr_t)server.memory, 4096, server.mr->lkey };
	CHECK_RETURNS(ibv_post_srq_recv(srq, &wr, &bad), 0);
	/* it keeps its number */
	CHECK_RETURNS(ibv_modify_srq(srq, &(struct ibv_srq_attr){ .max_wr = 300 }, IBV_SRQ_MAX_WR), 0);
	CHECK_RETURNS(ibv_post_srq_recv(srq, &wr, &bad), 0);
	send_to(&client, number);
	wc = completion(&server, IBV_WC_SUCCESS);
	CHECK(wc.wr_id == 9 && wc.byte_len == 1000 && wc.qp_num == second->qp_num);
	wc = completion(&server, IBV_WC_SUCCESS);
	CHECK(wc.byte_len == 500 && wc.imm_data == 77 && server.memory[999] == 'x');
	CHECK_RETURNS(ibv_close_xrcd(one), EBUSY);
	CHECK_RETURNS(ibv_destroy_cq(server.cq), EBUSY);
	CHECK_RETURNS(ibv_post_recv(client.qp, &wr, &bad), EINVAL);
	refuse_posts(second);
	CHECK_RETURNS(ibv_destroy_qp(second), 0);
	CHECK(!open_target(one, second->qp_num));
	CHECK_RETURNS(ibv_destroy_srq(srq), 0);
	CHECK_RETURNS(ibv_destroy_qp(client.qp), 0);
	CHECK_RETURNS(ibv_close_xrcd(one), 0);
	CHECK_RETURNS(ibv_close_xrcd(two), 0);
	CHECK_RETURNS(ibv_destroy_cq(server.cq), 0);
	CHECK_RETURNS(ibv_destroy_cq(client.cq), 0);
	CHECK_RETURNS(ibv_dereg_mr(server.mr), 0);
	CHECK_RETURNS(ibv_dereg_mr(client.mr), 0);
}

static void refuse_domains(void)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1 };
	int fd = new_file();
	struct ibv_xrcd *xrcd;

	CHECK_NULL(ibv_open_xrcd(context, &attr), EINVAL);
	CHECK_NULL(open_domain(fd, 0), EAGAIN);
	CHECK_NULL(open_domain(-1, O_TRUNC), EINVAL);
	CHECK((xrcd = open_domain(fd, O_CREAT | O_EXCL)));
	CHECK_NULL(open_domain(fd, O_CREAT | O_EXCL), EINVAL);
	CHECK_RETURNS(ibv_close_xrcd(xrcd), 0);
	CHECK_NULL(open_domain(fd, 0), EAGAIN); /* the last handle was closed, so the domain is gone */
	close(fd);
}

void case_xrc_refused(void)
{
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_qp_init_attr_ex qp = {
		.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd, .send_cq = cq, .cap = { .max_send_wr = 1 },
	};
	struct ibv_srq_init_attr_ex incomplete = { .srq_type = IBV_SRQT_XRC, .pd = pd, .cq = cq, .attr = basic.attr,
						   .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ };
	struct ibv_xrcd *xrcd = open_domain(-1, 0), *other = open_domain(-1, O_CREAT);
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND_WITH_INV };
	struct ibv_srq *srq;
	struct ibv_qp *target, *sender;
	uint32_t number;

	refuse_domains();
	CHECK(xrcd && other && cq);
	CHECK_NULL(ibv_create_srq_ex(context, &incomplete), EINVAL);
	incomplete.srq_type = IBV_SRQT_TM;
	CHECK_NULL(ibv_create_srq_ex(context, &incomplete), EOPNOTSUPP);
	CHECK((srq = ibv_create_srq(pd, &basic)));
	CHECK_RETURNS(ibv_get_srq_num(srq, &number), EINVAL);
	qp.srq = srq;
	CHECK_NULL(ibv_create_qp_ex(context, &qp), EINVAL);
	qp.srq = NULL;
	CHECK((sender = ibv_create_qp_ex(context, &qp)));
	to_init(sender, 0);
	CHECK_RETURNS(ibv_post_send(sender, &wr, &bad), EINVAL); /* not in RTS */
	CHECK((target = new_target(xrcd)));
	CHECK_NULL(open_target(other, target->qp_num), EINVAL);
	CHECK_NULL(open_target(xrcd, sender->qp_num), EINVAL);
	qp.qp_type = IBV_QPT_XRC_RECV;
	CHECK_NULL(ibv_create_qp_ex(context, &qp), EINVAL);
	CHECK_RETURNS(ibv_close_xrcd(xrcd), EBUSY);
	CHECK_RETURNS(ibv_destroy_qp(target), 0);
	CHECK_RETURNS(ibv_destroy_qp(sender), 0);
	CHECK_RETURNS(ibv_destroy_srq(srq), 0);
	CHECK_RETURNS(ibv_close_xrcd(xrcd), 0);
	CHECK_RETURNS(ibv_close_xrcd(other), 0);
	CHECK_RETURNS(ibv_destroy_cq(cq), 0);
}
