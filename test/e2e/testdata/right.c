/* right.c - what unready.c, reads.c, registers.c and tiny.c of test/mistakes do, done right. */
#include "../../../test/mistakes/mistakes.h"

#define PIECES 200
#define USES 65
#define RECEIVES 1000

static void write_once(struct side *a, const struct side *b, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)a->memory, 64, lkey };

	must(!post(a, b, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, sge) && polled(a) == IBV_WC_SUCCESS, "Write");
}

/* Receives that are completed while they are posted, here as the queue pair is in error. */
static void post_flushed(void)
{
	struct plan plan = PLAN;
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr wr[RECEIVES] = { 0 }, *bad;
	struct ibv_sge sge[RECEIVES];
	struct side s;

	plan.receives = plan.entries = RECEIVES;
	s = side_new(plan);
	to_init(&s);
	must(!ibv_modify_qp(s.qp, &error, IBV_QP_STATE), "ERR");
	for (int i = 0; i < RECEIVES; i++) {
		sge[i] = part(&s, (size_t)i * 64, 64);
		wr[i] = (struct ibv_recv_wr){ .next = i + 1 < RECEIVES ? &wr[i + 1] : NULL, .sg_list = &sge[i], .num_sge = 1 };
	}
	must(!ibv_post_recv(s.qp, wr, &bad), "ibv_post_recv");
	for (int i = 0; i < RECEIVES; i++)
		must(polled(&s) == IBV_WC_WR_FLUSH_ERR, "a flushed receive");
	must(!ibv_destroy_qp(s.qp), "ibv_destroy_qp");
}

int main(void)
{
	struct side a = side_new(PLAN), b = side_new(PLAN);
	struct ibv_mr *piece[PIECES], *mr;

	to_init(&a);
	to_init(&b);
	must(!receive(&b, part(&b, 0, 64)), "ibv_post_recv"); /* before a message can come */
	to_rtr(&a, b.qp->qp_num, 4711);
	to_rtr(&b, a.qp->qp_num, 4711);
	to_rts(&a, 4711, 14, 7, 7); /* with a max_rd_atomic of 1, which is what b serves */
	to_rts(&b, 4711, 14, 7, 7);
	must(!post(&a, NULL, IBV_WR_SEND, IBV_SEND_SIGNALED, part(&a, 0, 64)), "ibv_post_send");
	must(polled(&a) == IBV_WC_SUCCESS && polled(&b) == IBV_WC_SUCCESS, "Send");
	for (int i = 0; i < PIECES; i++) { /* once each, at the start */
		must((piece[i] = ibv_reg_mr(pd, a.memory, 64, 0)) != NULL, "ibv_reg_mr");
		write_once(&a, &b, piece[i]->lkey);
	}
	for (int i = 0; i < PIECES; i++)
		must(!ibv_dereg_mr(piece[i]), "ibv_dereg_mr");
	for (int i = 0; i < 100; i++) { /* each is worth it */
		must((mr = ibv_reg_mr(pd, a.memory, 64, 0)) != NULL, "ibv_reg_mr");
		for (int k = 0; k < USES; k++)
			write_once(&a, &b, mr->lkey);
		must(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	}
	post_flushed();
	return ibv_destroy_qp(a.qp) || ibv_destroy_qp(b.qp);
}
