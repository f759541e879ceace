/* cases_post.c - posting and polling. */
#include <pthread.h>

#include "setup.h"

struct refusal {
	struct ibv_send_wr wr;
	int want;
};

/* Posts a good request, then the bad one, then another: the good one is posted, *bad_wr is the bad one. */
static void refuse_second(struct setup *s, struct ibv_send_wr second, int want)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, 8, s->mr->lkey };
	struct ibv_send_wr third = { .wr_id = 3, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_send_wr first = { .wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				     .send_flags = IBV_SEND_SIGNALED, .next = &second };
	struct ibv_send_wr *bad = NULL;
	struct ibv_wc wc;

	second.next = &third;
	CHECK_RETURNS(ibv_post_send(s->qp, &first, &bad), want);
	CHECK(bad == &second);
	poll_for(s->cq, 1, &wc);
	CHECK(wc.wr_id == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(ibv_poll_cq(s->cq, 1, &wc) == 0);
}

static void refuse_requests(struct setup *s)
{
	struct ibv_sge many[3] = { { (uintptr_t)s->memory, 8, s->mr->lkey } };
	struct ibv_sge big[2] = { { (uintptr_t)s->memory, 1u << 30, s->mr->lkey }, { (uintptr_t)s->memory, 1, 0 } };
	struct ibv_sge wide = { (uintptr_t)s->memory, 513, 0 };
	struct ibv_send_wr good = { .wr_id = 2, .sg_list = many, .num_sge = 1, .opcode = IBV_WR_SEND }, w;

	refuse_second(s, (w = good, w.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, w.send_flags = IBV_SEND_INLINE, w), EINVAL);
	refuse_second(s, (w = good, w.opcode = IBV_WR_TSO, w), EOPNOTSUPP);
	refuse_second(s, (w = good, w.opcode = IBV_WR_BIND_MW, w), EINVAL);
	refuse_second(s, (w = good, w.opcode = (enum ibv_wr_opcode)77, w), EINVAL);
	refuse_second(s, (w = good, w.num_sge = 3, w), EINVAL);
	refuse_second(s, (w = good, w.num_sge = -1, w), EINVAL);
	refuse_second(s, (w = good, w.send_flags = 1u << 20, w), EINVAL);
	refuse_second(s, (w = good, w.sg_list = big, w.num_sge = 2, w), EINVAL);
	refuse_second(s, (w = good, w.send_flags = IBV_SEND_INLINE, w.sg_list = &wide, w), EINVAL);
	refuse_second(s, (w = good, w.opcode = IBV_WR_RDMA_READ, w.send_flags = IBV_SEND_INLINE, w), EINVAL);
	refuse_second(s, (w = good, w.opcode = IBV_WR_RDMA_READ, w.num_sge = 2, w), EINVAL);
}

void case_refuse_posts(void)
{
	struct setup s;
	struct ibv_sge sge[3] = { { 0 } };
	struct ibv_recv_wr *bad = NULL, wr = { .sg_list = sge, .num_sge = 3 };

	set_up(&s, 4, 4);
	refuse_requests(&s);
	CHECK_RETURNS(ibv_post_recv(s.qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	to_state(s.qp, IBV_QPS_RESET);
	CHECK_RETURNS(post_send(&s, IBV_WR_SEND, 1, 8), EINVAL);
	CHECK_RETURNS(post_recv(&s, 1), EINVAL);
	to_state(s.qp, IBV_QPS_INIT);
	CHECK_RETURNS(post_send(&s, IBV_WR_SEND, 1, 8), EINVAL);
	CHECK_RETURNS(post_recv(&s, 1), 0);
	tear_down(&s);
}

/* Enough to wrap each ring several times. */
void case_loop(void)
{
	struct setup s;
	struct ibv_wc wc[2];

	set_up(&s, 8, 8);
	for (uint32_t i = 0; i < 500; i++) {
		CHECK_RETURNS(post_recv(&s, 1000 + i), 0);
		CHECK_RETURNS(post_send(&s, IBV_WR_SEND, i, i + 1), 0);
		poll_for(s.cq, 2, wc);
		CHECK(wc[0].wr_id == 1000 + i && wc[0].opcode == IBV_WC_RECV && wc[0].byte_len == i + 1);
		CHECK(wc[1].wr_id == i && wc[1].opcode == IBV_WC_SEND && wc[1].qp_num == s.qp->qp_num);
	}
	tear_down(&s);
}

static void fill(struct setup *s, int n)
{
	for (int i = 0; i < n; i++)
		CHECK_RETURNS(post_send(s, IBV_WR_RDMA_WRITE, WR_HOLD | (uint64_t)i, 8), 0);
	CHECK_RETURNS(post_send(s, IBV_WR_RDMA_WRITE, 99, 8), ENOMEM);
}

void case_full(void)
{
	struct setup s;

	set_up(&s, 5, 3);
	fill(&s, 5);
	for (int i = 0; i < 3; i++)
		CHECK_RETURNS(post_recv(&s, (uint64_t)i), 0);
	CHECK_RETURNS(post_recv(&s, 99), ENOMEM);
	tear_down(&s);
}

/* Queue pairs for which one queue was requested have one. */
void case_one_queue(void)
{
	struct setup s;
	struct ibv_qp *both;
	struct ibv_wc wc[4];

	set_up(&s, 4, 0);
	for (uint64_t round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < 4; i++)
			CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, i, 8), 0);
		CHECK_RETURNS(post_recv(&s, 99), ENOMEM);
		poll_for(s.cq, 4, wc);
		to_state(s.qp, IBV_QPS_RESET);
		to_state(s.qp, IBV_QPS_RTS);
	}
	both = s.qp;
	s.qp = make_qp(&s, 0, 3);
	to_state(s.qp, IBV_QPS_RTS);
	for (uint64_t i = 0; i < 3; i++)
		CHECK_RETURNS(post_recv(&s, i), 0);
	CHECK_RETURNS(post_recv(&s, 99), ENOMEM);
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, 99, 8), ENOMEM);
	CHECK_RETURNS(ibv_destroy_qp(both), 0);
	tear_down(&s);
}

void case_resize(void)
{
	struct setup s;
	struct ibv_wc wc[8];

	set_up(&s, 16, 4);
	for (uint64_t i = 0; i < 8; i++)
		CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, i, 8), 0);
	poll_for(s.cq, 3, wc);
	CHECK_RETURNS(ibv_resize_cq(s.cq, 2000), 0);
	CHECK(s.cq->cqe >= 2000);
	poll_for(s.cq, 5, wc);
	CHECK(wc[0].wr_id == 3 && wc[4].wr_id == 7);
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, 8, 8), 0);
	poll_for(s.cq, 1, wc);
	CHECK(wc[0].wr_id == 8);
	tear_down(&s);
}

/* Completions of a destroyed queue pair are not polled any more. */
void case_forget(void)
{
	struct setup s;
	struct ibv_wc wc;
	struct ibv_qp *first;

	set_up(&s, 16, 4);
	for (uint64_t i = 0; i < 8; i++)
		CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, i, 8), 0);
	poll_for(s.cq, 1, &wc);
	first = s.qp;
	s.qp = make_qp(&s, 4, 4);
	to_state(s.qp, IBV_QPS_RTS);
	CHECK_RETURNS(ibv_destroy_qp(first), 0);
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, 1234, 8), 0);
	poll_for(s.cq, 1, &wc);
	CHECK(wc.wr_id == 1234);
	tear_down(&s);
}

static struct ibv_qp *make_extended(struct setup *s, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = s->cq, .recv_cq = s->cq, .qp_type = IBV_QPT_RC, .cap = { 4, 4, 2, 1, 64 }, .pd = s->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .send_ops_flags = ops,
	};

	return ibv_create_qp_ex(s->context, &attr);
}

static void build_good(struct setup *s, struct ibv_qp_ex *ex)
{
	struct ibv_sge list[2] = { { (uintptr_t)s->memory, 10, s->mr->lkey }, { (uintptr_t)s->memory, 20, s->mr->lkey } };
	struct ibv_wc wc[4];

	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ex->wr_id = 1;
	ibv_wr_rdma_write(ex, 7, 70);
	ibv_wr_set_sge_list(ex, 2, list);
	ex->wr_id = 2;
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, s->memory, 50);
	ex->wr_id = 3;
	ibv_wr_rdma_read(ex, 7, 70);
	ibv_wr_set_sge(ex, s->mr->lkey, (uintptr_t)s->memory, 33);
	ex->wr_id = 4;
	ibv_wr_send_inv(ex, 5);
	ibv_wr_set_sge(ex, s->mr->lkey, (uintptr_t)s->memory, 44);
	CHECK_RETURNS(ibv_wr_complete(ex), 0);
	poll_for(s->cq, 4, wc);
	CHECK(wc[0].wr_id == 1 && wc[0].byte_len == 30 && wc[0].opcode == IBV_WC_RDMA_WRITE);
	CHECK(wc[1].wr_id == 2 && wc[1].byte_len == 50 && wc[1].opcode == IBV_WC_SEND);
	CHECK(wc[2].wr_id == 3 && wc[2].byte_len == 33 && wc[2].opcode == IBV_WC_RDMA_READ);
	CHECK(wc[3].wr_id == 4 && wc[3].byte_len == 44);
}

/* One invalid request, one too many, one aborted: nothing is posted. */
static void build_bad(struct setup *s, struct ibv_qp_ex *ex)
{
	struct ibv_wc wc;

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, s->memory, 8);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, s->memory, 100000);
	CHECK_RETURNS(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	for (int i = 0; i < 5; i++) {
		ibv_wr_rdma_write(ex, 1, 1);
		ibv_wr_set_sge(ex, 1, 1, 1);
	}
	CHECK_RETURNS(ibv_wr_complete(ex), ENOMEM);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_abort(ex);
	ibv_wr_start(ex);
	ex->wr_id = 9;
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, s->memory, 8);
	CHECK_RETURNS(ibv_wr_complete(ex), 0);
	poll_for(s->cq, 1, &wc);
	CHECK(wc.wr_id == 9);
	CHECK(ibv_poll_cq(s->cq, 1, &wc) == 0);
}

void case_build(void)
{
	struct setup s;
	struct ibv_qp *qp;

	set_up(&s, 4, 4);
	CHECK(!ibv_qp_to_qp_ex(s.qp));
	CHECK_NULL(make_extended(&s, IBV_QP_EX_WITH_TSO), EOPNOTSUPP);
	qp = make_extended(&s, IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ |
				       IBV_QP_EX_WITH_SEND_WITH_INV);
	CHECK(qp && ibv_qp_to_qp_ex(qp));
	ibv_wr_start(ibv_qp_to_qp_ex(qp));
	CHECK_RETURNS(ibv_wr_complete(ibv_qp_to_qp_ex(qp)), EINVAL);
	to_state(qp, IBV_QPS_RTS);
	build_good(&s, ibv_qp_to_qp_ex(qp));
	build_bad(&s, ibv_qp_to_qp_ex(qp));
	CHECK_RETURNS(ibv_destroy_qp(qp), 0);
	tear_down(&s);
}

void case_pollex(void)
{
	struct setup s;
	struct ibv_cq_init_attr_ex init = { .cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS |
								   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP };
	struct ibv_poll_cq_attr poll = { .comp_mask = 0 };
	struct ibv_cq_ex *ex;
	struct ibv_cq *plain;
	uint64_t seen = 0;
	int status;

	set_up(&s, 8, 4);
	CHECK((ex = ibv_create_cq_ex(s.context, &init)));
	CHECK_RETURNS(ibv_start_poll(ex, &poll), ENOENT);
	plain = s.cq;
	CHECK_RETURNS(ibv_destroy_qp(s.qp), 0);
	s.cq = ibv_cq_ex_to_cq(ex);
	s.qp = make_qp(&s, 8, 4);
	to_state(s.qp, IBV_QPS_RTS);
	for (uint64_t i = 0; i < 6; i++)
		CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, i, 8), 0);
	while (seen < 6) {
		status = ibv_start_poll(ex, &poll);
		if (status == ENOENT)
			continue;
		do {
			CHECK(ex->wr_id == seen && ex->status == IBV_WC_SUCCESS && ibv_wc_read_byte_len(ex) == 8);
			CHECK(ibv_wc_read_opcode(ex) == IBV_WC_RDMA_WRITE && ibv_wc_read_completion_ts(ex) == 12345);
			seen++;
			status = ibv_next_poll(ex);
		} while (!status);
		CHECK(status == ENOENT);
		ibv_end_poll(ex);
	}
	CHECK_RETURNS(ibv_destroy_qp(s.qp), 0);
	CHECK_RETURNS(ibv_destroy_cq(s.cq), 0);
	s.cq = plain;
	s.qp = make_qp(&s, 8, 4);
	tear_down(&s);
}

void case_overrun(void)
{
	struct setup s;
	struct ibv_wc wc;
	int got;

	set_up(&s, 4, 4);
	CHECK_RETURNS(post_send(&s, IBV_WR_RDMA_WRITE, WR_OVERRUN, 8), 0);
	while ((got = ibv_poll_cq(s.cq, 1, &wc)) == 0)
		;
	CHECK(got == -1);
	tear_down(&s);
}

#define THREADS 4
#define PER_THREAD 2000

static void *post_many(void *arg)
{
	struct setup *s = arg;
	int status;

	for (int i = 0; i < PER_THREAD; i++) {
		while ((status = post_send(s, IBV_WR_RDMA_WRITE, 1, 8)) == ENOMEM)
			;
		CHECK(status == 0);
	}
	return NULL;
}

static void *poll_many(void *arg)
{
	struct setup *s = arg;
	struct ibv_wc wc[7];
	static int total;
	int got;

	while (__atomic_load_n(&total, __ATOMIC_RELAXED) < THREADS * PER_THREAD) {
		got = ibv_poll_cq(s->cq, 7, wc);
		CHECK(got >= 0);
		for (int i = 0; i < got; i++)
			CHECK(wc[i].wr_id == 1 && wc[i].status == IBV_WC_SUCCESS);
		__atomic_fetch_add(&total, got, __ATOMIC_RELAXED);
	}
	CHECK(__atomic_load_n(&total, __ATOMIC_RELAXED) == THREADS * PER_THREAD);
	return NULL;
}

/* Several threads post to one queue pair, two poll one queue. */
void case_threads(void)
{
	struct setup s;
	pthread_t threads[THREADS + 2];

	set_up(&s, 64, 4);
	for (int i = 0; i < THREADS + 2; i++)
		CHECK(!pthread_create(&threads[i], NULL, i < THREADS ? post_many : poll_many, &s));
	for (int i = 0; i < THREADS + 2; i++)
		pthread_join(threads[i], NULL);
	tear_down(&s);
}
