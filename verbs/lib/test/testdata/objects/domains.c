/* domains.c - parent and thread domains, registering regions again, and large memory. */
#include <sys/mman.h>

#include "objects.h"

/* Completion queues of a parent domain, which may say that only one thread polls. */
static void queue_in(struct ibv_pd *parent, struct ibv_pd *own)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD | IBV_CQ_INIT_ATTR_MASK_FLAGS, .parent_domain = parent,
		.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(context, &attr);

	CHECK(cq && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	attr.parent_domain = own;
	CHECK_NULL(ibv_create_cq_ex(context, &attr), EINVAL);
	attr.parent_domain = NULL;
	CHECK_NULL(ibv_create_cq_ex(context, &attr), EINVAL);
	attr.parent_domain = parent;
	attr.wc_flags |= IBV_WC_EX_WITH_CVLAN;
	CHECK_NULL(ibv_create_cq_ex(context, &attr), EOPNOTSUPP);
}

static void *allocate(struct ibv_pd *of, void *own, size_t size, size_t alignment, uint64_t type)
{
	(void)of, (void)own, (void)size, (void)alignment, (void)type;
	return IBV_ALLOCATOR_USE_DEFAULT;
}

static void release(struct ibv_pd *of, void *own, void *memory, uint64_t type)
{
	(void)of, (void)own, (void)memory, (void)type;
	abort();
}

void case_parent_domain(void)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd };
	struct ibv_td_init_attr none = { .comp_mask = 0 }, wrong = { .comp_mask = 1 };
	struct ibv_pd *own = ibv_alloc_pd(context), *parent;
	struct end a, b;

	CHECK_NULL(ibv_alloc_td(context, &wrong), EINVAL);
	CHECK((attr.td = ibv_alloc_td(context, &none)));
	attr.pd = own;
	attr.comp_mask = 1u << 20;
	CHECK_NULL(ibv_alloc_parent_domain(context, &attr), EINVAL);
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	attr.alloc = allocate;
	attr.free = release;
	CHECK((parent = ibv_alloc_parent_domain(context, &attr)));
	attr.pd = parent;
	CHECK_NULL(ibv_alloc_parent_domain(context, &attr), EINVAL);
	CHECK_RETURNS(ibv_dealloc_pd(own), EBUSY);
	CHECK(ibv_dealloc_td(attr.td) == EBUSY);
	queue_in(parent, own);

	pd = parent; /* for a and b: they work as in the protection domain itself */
	end_init(&a, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	pd = own;
	end_init(&b, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(a.qp->pd == parent && a.mr->pd == parent);
	end_free(&a);
	CHECK_RETURNS(ibv_dealloc_pd(parent), 0);
	CHECK(ibv_dealloc_td(attr.td) == 0);
	CHECK_RETURNS(ibv_dealloc_pd(own), EBUSY);
	end_free(&b);
	CHECK_RETURNS(ibv_dealloc_pd(own), 0);
}

static void write_and_expect(struct end *a, struct ibv_mr *mr, void *at, enum ibv_wc_status want)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = write_to(a, mr->rkey, (uintptr_t)at, 64, &sge);

	CHECK_RETURNS(post(a, &wr), 0);
	completion(a, want);
}

static void restart(struct end *a, struct end *b)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct end *ends[2] = { a, b };

	for (int i = 0; i < 2; i++) {
		CHECK_RETURNS(ibv_modify_qp(ends[i]->qp, &reset, IBV_QP_STATE), 0);
		to_init(ends[i]->qp, IBV_ACCESS_REMOTE_WRITE);
		to_rtr(ends[i]->qp, ends[1 - i]->qp->qp_num);
		to_rts(ends[i]->qp);
	}
}

/* Each of the three changes, and the accesses that each makes impossible. */
void case_rereg(void)
{
	const int write = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_pd *other = ibv_alloc_pd(context);
	uint8_t *elsewhere = aligned_alloc(4096, LENGTH);
	struct ibv_mr *mr;
	struct end a, b;

	memset(elsewhere, 0, LENGTH);
	pair_up(&a, &b, IBV_QPT_RC, write);
	mr = b.mr;
	memset(a.memory, 9, LENGTH);
	CHECK(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_CMD && errno == EINVAL);
	CHECK(ibv_rereg_mr(mr, 1 << 20, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT && errno == EINVAL);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE) == IBV_REREG_MR_ERR_CMD &&
		errno == EINVAL);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT && errno == EINVAL);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, elsewhere, 0, 0) == IBV_REREG_MR_ERR_INPUT);
	write_and_expect(&a, mr, b.memory, IBV_WC_SUCCESS); /* nothing has changed */

	CHECK_RETURNS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, elsewhere, LENGTH, 0), 0);
	CHECK(mr->addr == elsewhere && mr->length == LENGTH);
	write_and_expect(&a, mr, elsewhere, IBV_WC_SUCCESS);
	CHECK(elsewhere[0] == 9 && elsewhere[63] == 9);
	CHECK_RETURNS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), 0);
	write_and_expect(&a, mr, elsewhere, IBV_WC_REM_ACCESS_ERR);
	restart(&a, &b);
	CHECK_RETURNS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_PD, other, NULL, 0, write), 0);
	CHECK(mr->pd == other);
	write_and_expect(&a, mr, elsewhere, IBV_WC_REM_ACCESS_ERR);
	restart(&a, &b);
	CHECK_RETURNS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD, pd, b.memory, LENGTH, 0), 0);
	write_and_expect(&a, mr, b.memory, IBV_WC_SUCCESS);
	CHECK_RETURNS(ibv_dealloc_pd(other), 0);
	end_free(&a);
	end_free(&b);
	free(elsewhere);
}

/* An empty region can be used in transfers of no bytes, and can become another. */
void case_empty_region(void)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct end a, b;

	pair_up(&a, &b, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(!ibv_reg_mr(pd, NULL, 0, 0) && errno == EINVAL);
	CHECK(!ibv_reg_mr(pd, b.memory, 0, 0) && errno == EINVAL); /* at the start of a page */
	CHECK((mr = ibv_reg_mr(pd, b.memory + 8, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) && mr->length == 0);
	wr = write_to(&a, mr->rkey, (uintptr_t)b.memory + 8, 1, &sge);
	sge = (struct ibv_sge){ (uintptr_t)b.memory + 8, 0, mr->lkey };
	CHECK_RETURNS(post(&a, &wr), 0);
	completion(&a, IBV_WC_SUCCESS);
	write_and_expect(&a, mr, b.memory, IBV_WC_REM_ACCESS_ERR);
	restart(&a, &b);
	CHECK_RETURNS(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b.memory, LENGTH, 0), 0);
	write_and_expect(&a, mr, b.memory, IBV_WC_SUCCESS);
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
	end_free(&a);
	end_free(&b);
}

/* A region of 1.5 GiB; a peer writes to both ends. */
void case_large_region(void)
{
	const size_t size = (size_t)3 << 29;
	struct ibv_mr *mr;
	struct end a, b;
	uint8_t *at;

	pair_up(&a, &b, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(at != MAP_FAILED);
	CHECK((mr = ibv_reg_mr(pd, at, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)));
	memset(a.memory, 5, LENGTH);
	write_and_expect(&a, mr, at, IBV_WC_SUCCESS);
	write_and_expect(&a, mr, at + size - 64, IBV_WC_SUCCESS);
	CHECK(at[0] == 5 && at[63] == 5 && at[64] == 0 && at[size - 65] == 0 && at[size - 64] == 5 && at[size - 1] == 5);
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
	munmap(at, size);
	end_free(&a);
	end_free(&b);
}
