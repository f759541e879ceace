/* cases.c - when a slot of a queue is free again: once its completion, or a later one of its queue, was
 * polled; if it has none, once urdmad has completed it. */
#include "slots.h"

static int polls(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	return ibv_poll_cq(cq, 1, &wc);
}

/* Posting never overruns a completion queue with as many entries as the queue. */
void case_sends(void)
{
	struct end a, b;

	pair_up(&a, &b);
	for (uint64_t first = 0; first < 20 * DEPTH; first += DEPTH + 1) {
		CHECK_RETURNS(fill_with_writes(&a, first, IBV_SEND_SIGNALED), DEPTH);
		expect(a.qp->send_cq, first, 1, IBV_WC_SUCCESS);
		CHECK_RETURNS(fill_with_writes(&a, first + DEPTH, IBV_SEND_SIGNALED), 1);
		expect(a.qp->send_cq, first + 1, DEPTH, IBV_WC_SUCCESS);
		CHECK_RETURNS(polls(a.qp->send_cq), 0);
	}
	/* A list of requests stops at the same place. */
	CHECK_RETURNS(fill_with_writes(&a, 1000, IBV_SEND_SIGNALED), DEPTH);
	expect(a.qp->send_cq, 1000, 5, IBV_WC_SUCCESS);
	CHECK_RETURNS(fill_with_writes(&a, 1000 + DEPTH, IBV_SEND_SIGNALED), 5);
}

void case_receives(void)
{
	struct end a, b;

	pair_up(&a, &b);
	for (uint64_t first = 0; first < 10 * DEPTH; first += DEPTH) {
		CHECK_RETURNS(fill_with_receives(&b, first), DEPTH);
		for (uint64_t i = 0; i < DEPTH; i++)
			CHECK_RETURNS(post_message(&a, i), 0);
		expect(a.qp->send_cq, 0, DEPTH, IBV_WC_SUCCESS);
		CHECK_RETURNS(fill_with_receives(&b, first + DEPTH), 0);
		expect(b.qp->recv_cq, first, 1, IBV_WC_SUCCESS);
		CHECK_RETURNS(fill_with_receives(&b, first + DEPTH), 1);
		first++;
		expect(b.qp->recv_cq, first, DEPTH - 1, IBV_WC_SUCCESS);
		CHECK_RETURNS(post_message(&a, 1), 0);
		expect(a.qp->send_cq, 1, 1, IBV_WC_SUCCESS);
		expect(b.qp->recv_cq, first + DEPTH - 1, 1, IBV_WC_SUCCESS);
	}
}

/* No completion is ever polled. */
void case_unsignaled(void)
{
	struct end a, b;
	int status;

	pair_up(&a, &b);
	for (uint64_t i = 0; i < 1000 * DEPTH; i++) {
		while ((status = post_write(&a, i, 0)) == ENOMEM)
			;
		CHECK_RETURNS(status, 0);
	}
	expect_nothing(a.qp->send_cq);
}

/* Every fourth is signaled: its completion frees the three before it; those after it are freed without
 * polling, up to the next. */
void case_selective(void)
{
	struct end a, b;
	uint64_t next = 0, done = 3;
	unsigned int flags;
	int n, status;

	pair_up(&a, &b);
	for (int round = 0; round < 20; round++) {
		for (n = 0; n < 4 * DEPTH; n++, next++) {
			flags = next % 4 == 3 ? IBV_SEND_SIGNALED : 0;
			status = post_write(&a, next, flags);
			if (status == ENOMEM) {
				settle();
				status = post_write(&a, next, flags);
			}
			if (status == ENOMEM)
				break;
			CHECK_RETURNS(status, 0);
		}
		CHECK(n == (round == 0 ? DEPTH + 3 : 4)); /* the first three were freed without polling */
		expect(a.qp->send_cq, done, 1, IBV_WC_SUCCESS);
		done += 4;
	}
}

void case_all_signaled(void)
{
	struct ibv_cq *cq = make_cq(DEPTH);
	struct ibv_qp_init_attr attr = { .send_cq = cq, .recv_cq = make_cq(DEPTH), .qp_type = IBV_QPT_RC,
					 .cap = { DEPTH, DEPTH, 1, 1, 0 }, .sq_sig_all = 1 };
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);
	struct end a, b;

	CHECK(qp && !ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	join(&a, qp, &b, make_pair(make_cq(DEPTH), make_cq(DEPTH)));
	CHECK_RETURNS(fill_with_writes(&a, 0, 0), DEPTH);
	expect(cq, 0, 1, IBV_WC_SUCCESS);
	CHECK_RETURNS(fill_with_writes(&a, DEPTH, 0), 1);
	expect(cq, 1, DEPTH, IBV_WC_SUCCESS);
}

/* In the error state every request completes, signaled or not. */
void case_failed(void)
{
	struct end a, b;

	pair_up(&a, &b);
	CHECK_RETURNS(post_write(&a, 0, 0), 0);
	settle();
	to_state(a.qp, IBV_QPS_ERR);
	for (uint64_t first = 1; first < 5 * DEPTH; first += DEPTH) {
		CHECK_RETURNS(fill_with_writes(&a, first, 0), DEPTH);
		CHECK_RETURNS(fill_with_receives(&a, first), DEPTH);
		expect(a.qp->send_cq, first, DEPTH, IBV_WC_WR_FLUSH_ERR);
		expect(a.qp->recv_cq, first, DEPTH, IBV_WC_WR_FLUSH_ERR);
	}
	expect_nothing(a.qp->send_cq);
}

/* Unsignaled sends that succeeded before the error are free; request 10, the first failure, and later ones
 * are not. */
void case_failed_under_way(void)
{
	struct ibv_sge sge = { (uintptr_t)memory, 8, 0 };
	struct ibv_send_wr *bad, wrong = { .wr_id = 10, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };
	struct end a, b;

	sge.lkey = mr->lkey;
	pair_up(&a, &b);
	for (uint64_t i = 0; i < 10; i++)
		CHECK_RETURNS(post_write(&a, i, 0), 0);
	CHECK_RETURNS(ibv_post_send(a.qp, &wrong, &bad), 0);
	settle();
	CHECK_RETURNS(fill_with_writes(&a, 11, 0), DEPTH - 1);
	expect(a.qp->send_cq, 10, 1, IBV_WC_REM_ACCESS_ERR);
	expect(a.qp->send_cq, 11, DEPTH - 1, IBV_WC_WR_FLUSH_ERR);
	CHECK_RETURNS(fill_with_writes(&a, 100, 0), DEPTH);
	expect(a.qp->send_cq, 100, DEPTH, IBV_WC_WR_FLUSH_ERR);
}

static int build_write(struct end *from, uint64_t wr_id, int n)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(from->qp);

	ibv_wr_start(ex);
	for (int i = 0; i < n; i++) {
		ex->wr_id = wr_id + (uint64_t)i;
		ex->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)memory + 2048);
		ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)memory, 8);
	}
	return ibv_wr_complete(ex);
}

/* Takes one completion with the extended interface. */
static void take_one(struct ibv_cq_ex *cq, uint64_t wr_id)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 0 };
	int status;

	while ((status = ibv_start_poll(cq, &attr)) == ENOENT)
		;
	CHECK_RETURNS(status, 0);
	CHECK(cq->wr_id == wr_id && cq->status == IBV_WC_SUCCESS);
	ibv_end_poll(cq);
}

void case_extended(void)
{
	struct ibv_cq_init_attr_ex init = { .cqe = DEPTH };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &init);
	struct end a, b;

	CHECK(cq);
	join(&a, make_extended(ibv_cq_ex_to_cq(cq), make_cq(DEPTH)), &b, make_pair(make_cq(DEPTH), make_cq(DEPTH)));
	for (uint64_t first = 0; first < 10 * (DEPTH + 2); first += DEPTH + 2) {
		CHECK_RETURNS(build_write(&a, first, DEPTH + 1), ENOMEM);
		CHECK_RETURNS(build_write(&a, first, DEPTH), 0);
		settle();
		CHECK_RETURNS(build_write(&a, first + DEPTH, 1), ENOMEM);
		take_one(cq, first);
		CHECK_RETURNS(build_write(&a, first + DEPTH, 2), ENOMEM);
		CHECK_RETURNS(build_write(&a, first + DEPTH, 1), 0);
		settle();
		CHECK_RETURNS(build_write(&a, first + DEPTH, 1), ENOMEM);
		take_one(cq, first + 1);
		CHECK_RETURNS(post_write(&a, first + DEPTH + 1, IBV_SEND_SIGNALED), 0);
		for (uint64_t i = 2; i < DEPTH + 2; i++)
			take_one(cq, first + i);
	}
}

/* Two queue pairs, each other's peers, with all four queues completing on one: a polled completion frees a
 * slot of the queue it names, and of no other. */
void case_shared(void)
{
	struct ibv_cq *cq = make_cq(4 * DEPTH);
	struct end ends[2], *end;
	struct ibv_wc wc;

	join(&ends[0], make_pair(cq, cq), &ends[1], make_pair(cq, cq));
	for (int e = 0; e < 2; e++)
		CHECK_RETURNS(fill_with_receives(&ends[e], 0), DEPTH);
	for (int e = 0; e < 2; e++)
		for (uint64_t i = 0; i < DEPTH; i++)
			CHECK_RETURNS(post_message(&ends[e], i), 0);
	settle();
	for (int i = 0; i < 4 * DEPTH; i++) {
		poll_for(cq, 1, &wc);
		CHECK(wc.status == IBV_WC_SUCCESS);
		end = &ends[wc.qp_num == ends[1].qp->qp_num];
		for (int e = 0; e < 2; e++) {
			int polled = end == &ends[e];

			CHECK_RETURNS(post_receive(&ends[e], 99), polled && wc.opcode == IBV_WC_RECV ? 0 : ENOMEM);
			CHECK_RETURNS(post_receive(&ends[e], 99), ENOMEM);
			CHECK_RETURNS(post_write(&ends[e], 99, IBV_SEND_SIGNALED),
				      polled && wc.opcode == IBV_WC_SEND ? 0 : ENOMEM);
			CHECK_RETURNS(post_write(&ends[e], 99, IBV_SEND_SIGNALED), ENOMEM);
		}
	}
	expect(cq, 99, 1, IBV_WC_SUCCESS);
	for (int i = 1; i < 2 * DEPTH; i++) {
		poll_for(cq, 1, &wc);
		CHECK(wc.wr_id == 99 && wc.opcode == IBV_WC_RDMA_WRITE);
	}
	expect_nothing(cq);
}

/* Completions of a destroyed queue pair neither fill its completion queue nor free slots of the next one. */
void case_destroyed(void)
{
	struct ibv_cq *cq = make_cq(DEPTH), *recv = make_cq(DEPTH);
	struct end a, b;

	for (uint64_t round = 0; round < 10; round++) {
		join(&a, make_pair(cq, recv), &b, make_pair(make_cq(DEPTH), make_cq(DEPTH)));
		CHECK_RETURNS(fill_with_writes(&a, 100 * round, IBV_SEND_SIGNALED), DEPTH);
		if (round % 3 == 1)
			expect(cq, 100 * round, 3, IBV_WC_SUCCESS);
		part(&a);
		CHECK_RETURNS(ibv_destroy_qp(a.qp), 0);
		CHECK_RETURNS(polls(cq), 0);
	}
}

void case_reset(void)
{
	struct ibv_cq *cq = make_cq(DEPTH), *recv = make_cq(DEPTH);
	struct ibv_qp *mine = make_pair(cq, recv), *theirs = make_pair(make_cq(DEPTH), make_cq(DEPTH));
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	struct end a, b;

	for (uint64_t round = 0; round < 10; round++) {
		join(&a, mine, &b, theirs);
		if (round % 2) { /* before the reset every request failed */
			to_state(mine, IBV_QPS_ERR);
			settle();
		}
		CHECK_RETURNS(fill_with_writes(&a, 100 * round, IBV_SEND_SIGNALED), DEPTH);
		CHECK_RETURNS(fill_with_receives(&a, 100 * round), DEPTH);
		for (uint64_t i = 0; i < round; i++)
			expect(cq, 100 * round + i, 1, round % 2 ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
		part(&a);
		part(&b);
		to_state(mine, IBV_QPS_RESET);
		to_state(theirs, IBV_QPS_RESET);
		CHECK_RETURNS(polls(cq), 0);
		CHECK_RETURNS(ibv_modify_qp(mine, &init, mask), 0);
		CHECK_RETURNS(ibv_modify_qp(theirs, &init, mask), 0);
	}
	join(&a, mine, &b, theirs);
	for (uint64_t i = 0; i < 100; i++) { /* and unsignaled ones have no completion again */
		while (post_write(&a, i, 0) == ENOMEM)
			;
	}
	expect_nothing(cq);
}
