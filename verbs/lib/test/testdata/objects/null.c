/* null.c - a memory region without memory: reads return 0, writes are discarded. */
#include <stdbool.h>
#include <stdlib.h>

#include "objects.h"

#define PIECE 1000u

/* The first and the last part of e's memory, and the null region in between. */
static void fill(struct ibv_sge *list, const struct end *e, const struct ibv_mr *null)
{
	list[0] = (struct ibv_sge){ (uintptr_t)e->memory, PIECE, e->mr->lkey };
	list[1] = (struct ibv_sge){ UINT64_MAX - PIECE, PIECE, null->lkey };
	list[2] = (struct ibv_sge){ (uintptr_t)e->memory + 2 * PIECE, PIECE, e->mr->lkey };
}

static bool all(const uint8_t *p, uint8_t value)
{
	for (size_t i = 0; i < PIECE; i++)
		if (p[i] != value)
			return false;
	return true;
}

static void join(struct end *near, struct end *far)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct end *ends[] = { near, far };

	pair_up(near, far, IBV_QPT_RC, access);
	for (int i = 0; i < 2; i++) { /* with lists of three */
		struct ibv_qp_init_attr attr = { .send_cq = ends[i]->cq, .recv_cq = ends[i]->cq, .qp_type = IBV_QPT_RC,
			.cap = { 8, 8, 3, 3, 0 } };

		CHECK_RETURNS(ibv_destroy_qp(ends[i]->qp), 0);
		CHECK((ends[i]->qp = ibv_create_qp(pd, &attr)));
		to_init(ends[i]->qp, (unsigned int)access);
	}
	to_rtr(near->qp, far->qp->qp_num);
	to_rtr(far->qp, near->qp->qp_num);
	to_rts(near->qp);
	to_rts(far->qp);
}

void case_null_region(void)
{
	struct ibv_mr *null = ibv_alloc_null_mr(pd);
	struct end near, far;
	struct ibv_sge list[3];
	struct ibv_send_wr wr = { .sg_list = list, .num_sge = 3, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr *bad, recv = { .sg_list = list, .num_sge = 3 };

	CHECK(null && null->lkey);
	join(&near, &far);
	memset(near.memory, 'x', LENGTH);
	memset(far.memory, 'y', LENGTH);
	fill(list, &near, null);
	wr.wr.rdma.rkey = far.mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)far.memory;
	CHECK_RETURNS(post(&near, &wr), 0);
	completion(&near, IBV_WC_SUCCESS);
	CHECK(all(far.memory, 'x') && all(far.memory + PIECE, 0) && all(far.memory + 2 * PIECE, 'x') &&
		all(far.memory + 3 * PIECE, 'y'));

	memset(far.memory, 'z', LENGTH);
	wr.opcode = IBV_WR_RDMA_READ;
	CHECK_RETURNS(post(&near, &wr), 0);
	completion(&near, IBV_WC_SUCCESS);
	CHECK(all(near.memory, 'z') && all(near.memory + PIECE, 'x') && all(near.memory + 2 * PIECE, 'z'));

	fill(list, &far, null);
	CHECK_RETURNS(ibv_post_recv(far.qp, &recv, &bad), 0);
	list[0] = (struct ibv_sge){ (uintptr_t)near.memory, 3 * PIECE, near.mr->lkey };
	wr.opcode = IBV_WR_SEND;
	wr.num_sge = 1;
	CHECK_RETURNS(post(&near, &wr), 0);
	completion(&near, IBV_WC_SUCCESS);
	CHECK(completion(&far, IBV_WC_SUCCESS).byte_len == 3 * PIECE);
	CHECK(all(far.memory, 'z') && all(far.memory + PIECE, 'z') && all(far.memory + 2 * PIECE, 'z'));

	list[0] = (struct ibv_sge){ 8, 8, null->lkey }; /* the response is discarded */
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)far.memory;
	wr.wr.atomic.rkey = far.mr->rkey;
	wr.wr.atomic.compare_add = 1;
	CHECK_RETURNS(post(&near, &wr), 0);
	completion(&near, IBV_WC_SUCCESS);
	CHECK(far.memory[0] == 'z' + 1);

	CHECK_RETURNS(ibv_dereg_mr(null), 0);
	end_free(&near);
	end_free(&far);
}

/* Only its owner can use it, in one domain. */
void case_null_region_refused(void)
{
	struct ibv_pd *other = ibv_alloc_pd(context);
	struct ibv_mr *null = ibv_alloc_null_mr(pd), *foreign = ibv_alloc_null_mr(other);
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct end near, far;

	CHECK(null && foreign);
	errno = 0;
	CHECK(ibv_rereg_mr(null, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT &&
		errno == EOPNOTSUPP);
	join(&near, &far);
	wr = write_to(&near, null->lkey, 0, 100, &sge);
	CHECK_RETURNS(post(&near, &wr), 0);
	completion(&near, IBV_WC_REM_ACCESS_ERR);
	end_free(&near);
	end_free(&far);
	join(&near, &far);
	wr = write_to(&near, far.mr->rkey, (uintptr_t)far.memory, 100, &sge);
	sge.lkey = foreign->lkey;
	CHECK_RETURNS(post(&near, &wr), 0);
	completion(&near, IBV_WC_LOC_PROT_ERR);
	CHECK_RETURNS(ibv_dealloc_pd(other), EBUSY);
	CHECK_RETURNS(ibv_dereg_mr(foreign), 0);
	CHECK_RETURNS(ibv_dereg_mr(null), 0);
	CHECK_RETURNS(ibv_dealloc_pd(other), 0);
	end_free(&near);
	end_free(&far);
}
