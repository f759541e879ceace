/* odp.c - on-demand paging: nothing is looked at when memory is registered, and each access finds what is
 * mapped at that moment. */
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "objects.h"

#define PAGES 16u
#define SIZE (PAGES * 4096u)
#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define ON_DEMAND (RIGHTS | IBV_ACCESS_ON_DEMAND)

static struct end a, b;

/* A pair that has failed is replaced. */
static void fresh(void)
{
	if (a.qp) {
		end_free(&a);
		end_free(&b);
	}
	pair_up(&a, &b, IBV_QPT_RC, RIGHTS | IBV_ACCESS_REMOTE_ATOMIC);
}

static bool supported(void)
{
	struct ibv_device_attr_ex attr;

	CHECK_RETURNS(ibv_query_device_ex(context, NULL, &attr), 0);
	if (attr.odp_caps.general_caps)
		return true;
	CHECK_NULL(ibv_reg_mr(pd, &attr, sizeof(attr), ON_DEMAND), EOPNOTSUPP);
	printf("SKIPPED: the kernel is older than 6.11\n");
	return false;
}

static uint8_t *map(void *at, int prot, int flags)
{
	uint8_t *memory = mmap(at, SIZE, prot, flags | (at ? MAP_FIXED : 0) | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

/* Writes length bytes to the region, reads them back, and checks them. */
static void works(struct ibv_mr *mr, uint8_t *at, uint32_t length, uint8_t value)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	memset(a.memory, value, length);
	wr = write_to(&a, mr->rkey, (uintptr_t)at, length, &sge);
	CHECK_RETURNS(post(&a, &wr), 0);
	completion(&a, IBV_WC_SUCCESS);
	CHECK(at[0] == value && at[length - 1] == value);
	at[1] = (uint8_t)(value + 1);
	wr.opcode = IBV_WR_RDMA_READ;
	CHECK_RETURNS(post(&a, &wr), 0);
	completion(&a, IBV_WC_SUCCESS);
	CHECK(a.memory[1] == (uint8_t)(value + 1) && a.memory[2] == value);
}

/* An access of the peer that the memory does not allow fails, and so do both queue pairs. */
static void fails(struct ibv_mr *mr, uint8_t *at, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = write_to(&a, mr->rkey, (uintptr_t)at, 64, &sge);

	wr.opcode = opcode;
	CHECK_RETURNS(post(&a, &wr), 0);
	completion(&a, IBV_WC_REM_ACCESS_ERR);
	fresh();
}

void case_on_demand(void)
{
	uint8_t *memory;
	struct ibv_mr *mr;

	if (!supported())
		return;
	fresh();
	memory = map(NULL, PROT_NONE, MAP_PRIVATE);
	munmap(memory, SIZE);
	CHECK((mr = ibv_reg_mr(pd, memory, SIZE, ON_DEMAND))); /* nothing is mapped there */
	fails(mr, memory, IBV_WR_RDMA_WRITE);
	fails(mr, memory, IBV_WR_RDMA_READ);
	map(memory, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	works(mr, memory, SIZE, 1);
	munmap(memory, SIZE);
	fails(mr, memory, IBV_WR_RDMA_WRITE);
	map(memory, PROT_READ | PROT_WRITE, MAP_SHARED); /* other memory */
	CHECK(memory[0] == 0);
	works(mr, memory, SIZE, 2);
	CHECK(madvise(memory, SIZE, MADV_REMOVE) == 0 && memory[0] == 0);
	works(mr, memory, SIZE, 3);
	munmap(memory + SIZE / 2, SIZE / 2);
	works(mr, memory, SIZE / 2, 4);
	fails(mr, memory + SIZE / 2 - 32, IBV_WR_RDMA_WRITE);
	fails(mr, memory + SIZE / 2 - 32, IBV_WR_RDMA_READ);
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
	munmap(memory, SIZE);
}

/* mprotect holds for the peer, too, also where a debugger may write. */
void case_on_demand_protection(void)
{
	uint8_t *memory;
	struct ibv_mr *mr;

	if (!supported())
		return;
	fresh();
	for (int flags = MAP_SHARED; flags <= MAP_PRIVATE; flags++) {
		memory = map(NULL, PROT_READ, flags);
		CHECK((mr = ibv_reg_mr(pd, memory, SIZE, ON_DEMAND)));
		fails(mr, memory, IBV_WR_RDMA_WRITE);
		CHECK(memory[0] == 0);
		CHECK(mprotect(memory, SIZE, PROT_READ | PROT_WRITE) == 0);
		works(mr, memory, SIZE, 5);
		CHECK(mprotect(memory, SIZE, PROT_READ) == 0);
		fails(mr, memory, IBV_WR_RDMA_WRITE);
		CHECK(memory[0] == 5);
		CHECK(mprotect(memory, SIZE, PROT_NONE) == 0);
		fails(mr, memory, IBV_WR_RDMA_READ);
		CHECK_RETURNS(ibv_dereg_mr(mr), 0);
		munmap(memory, SIZE);
	}
}

/* Local memory that is missing fails the program's own work request. */
void case_on_demand_local(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_recv_wr *bad, receive_wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };
	uint8_t *memory;
	struct ibv_mr *mr;

	if (!supported())
		return;
	fresh();
	memory = map(NULL, PROT_READ | PROT_WRITE, MAP_PRIVATE);
	CHECK((mr = ibv_reg_mr(pd, memory, SIZE, ON_DEMAND)));
	for (int round = 0; round < 2; round++) {
		memset(memory, 'x', SIZE);
		wr = write_to(&a, b.mr->rkey, (uintptr_t)b.memory, SIZE, &sge);
		sge.addr = (uintptr_t)memory;
		sge.lkey = mr->lkey;
		CHECK_RETURNS(post(&a, &wr), 0);
		completion(&a, IBV_WC_SUCCESS);
		CHECK(b.memory[SIZE - 1] == 'x');
		munmap(memory, SIZE);
		CHECK_RETURNS(post(&a, &wr), 0);
		completion(&a, IBV_WC_LOC_PROT_ERR);
		fresh();
		map(memory, PROT_READ | PROT_WRITE, MAP_PRIVATE);
		CHECK_RETURNS(ibv_post_recv(b.qp, &receive_wr, &bad), 0);
		wr = request(&a, IBV_WR_SEND, SIZE, &sge);
		memset(a.memory, 'y', SIZE);
		CHECK_RETURNS(post(&a, &wr), 0);
		completion(&a, IBV_WC_SUCCESS);
		completion(&b, IBV_WC_SUCCESS);
		CHECK(memory[0] == 'y' && memory[SIZE - 1] == 'y');
	}
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
	munmap(memory, SIZE);
}

static uint8_t data[SIZE];

void case_on_demand_implicit(void)
{
	static const char constant[64] = "read only";
	uint8_t stack[4096], *memory;
	struct ibv_mr *mr;
	int status;
	pid_t child;

	if (!supported())
		return;
	fresh();
	CHECK((mr = ibv_reg_mr(pd, NULL, SIZE_MAX, ON_DEMAND)));
	CHECK(mr->addr == NULL && mr->length == SIZE_MAX);
	works(mr, data, SIZE, 6);
	works(mr, stack, sizeof(stack), 7);
	works(mr, a.memory, 4096, 8); /* memory of the library's own allocator */
	memory = map(NULL, PROT_READ | PROT_WRITE, MAP_SHARED);
	works(mr, memory, SIZE, 9);
	memset(data, 9, SIZE);
	child = fork();
	if (child == 0) {
		memset(data, 1, SIZE);
		memory[5] = 77;
		_exit(0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	CHECK(data[0] == 9 && memory[5] == 77); /* what was private is, and what was shared is */
	works(mr, data, SIZE, 10);
	works(mr, memory, SIZE, 11);
	munmap(memory, SIZE);
	fails(mr, memory, IBV_WR_RDMA_READ);
	fails(mr, (uint8_t *)(uintptr_t)constant, IBV_WR_RDMA_WRITE);
	fails(mr, NULL, IBV_WR_RDMA_READ);
	fails(mr, (uint8_t *)(UINT64_MAX - 65), IBV_WR_RDMA_WRITE);
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
}

void case_on_demand_refused(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr;
	struct ibv_mw *window;
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
	struct ibv_mr *mr;

	if (!supported())
		return;
	fresh();
	CHECK_NULL(ibv_reg_mr(pd, NULL, SIZE_MAX, RIGHTS), EINVAL);
	CHECK_NULL(ibv_reg_mr(pd, NULL, SIZE_MAX, ON_DEMAND | IBV_ACCESS_HUGETLB), EINVAL);
	CHECK_NULL(ibv_reg_mr_iova(pd, NULL, SIZE_MAX, 4096, ON_DEMAND), EINVAL);
	CHECK_NULL(ibv_reg_mr(pd, (void *)4096, SIZE_MAX, ON_DEMAND), EINVAL);
	CHECK_NULL(ibv_reg_mr(pd, data, SIZE, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND), EINVAL);
	/* Atomics are none of odp_caps: the flag may be there, and each one is refused. */
	CHECK((mr = ibv_reg_mr(pd, data, SIZE, ON_DEMAND | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)));
	works(mr, data, SIZE, 12);
	wr = write_to(&a, mr->rkey, (uintptr_t)data, 8, &sge);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)data;
	wr.wr.atomic.rkey = mr->rkey;
	wr.wr.atomic.compare_add = 1;
	CHECK_RETURNS(post(&a, &wr), 0);
	completion(&a, IBV_WC_REM_ACCESS_ERR);
	CHECK(data[0] == 12);
	fresh();
	/* A window of it is like it. */
	CHECK((window = ibv_alloc_mw(pd, IBV_MW_TYPE_1)));
	bind.bind_info = (struct ibv_mw_bind_info){ mr, (uintptr_t)data, SIZE,
		RIGHTS & ~IBV_ACCESS_LOCAL_WRITE };
	bind.bind_info.mw_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
	CHECK_RETURNS(ibv_bind_mw(b.qp, window, &bind), 0);
	completion(&b, IBV_WC_SUCCESS);
	wr.wr.atomic.rkey = window->rkey;
	sge.addr = (uintptr_t)a.memory;
	sge.lkey = a.mr->lkey;
	CHECK_RETURNS(post(&a, &wr), 0);
	completion(&a, IBV_WC_REM_ACCESS_ERR);
	fresh();
	CHECK(mprotect(data + SIZE / 2, 4096, PROT_READ) == 0 || errno == EINVAL);
	CHECK_RETURNS(ibv_dealloc_mw(window), 0);
	mprotect(data + SIZE / 2, 4096, PROT_READ | PROT_WRITE);
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
}

static int advise(enum ibv_advise_mr_advice advice, uint32_t flags, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge list[2] = { { addr, 1, lkey }, { addr, length, lkey } };

	return ibv_advise_mr(pd, advice, flags, list, 2);
}

static int resident(uint8_t *memory)
{
	uint8_t pages[PAGES];
	int n = 0;

	CHECK(mincore(memory, SIZE, pages) == 0);
	for (unsigned i = 0; i < PAGES; i++)
		n += pages[i] & 1;
	return n;
}

void case_advise(void)
{
	const uint64_t iova = 1 << 20;
	struct ibv_pd *other;
	struct ibv_mr *mr, *readable, *ordinary, *everything;
	struct ibv_sge sge;
	uint8_t *memory;
	uint32_t lkey;

	if (!supported())
		return;
	memory = map(NULL, PROT_READ | PROT_WRITE, MAP_SHARED);
	CHECK((mr = ibv_reg_mr_iova(pd, memory, SIZE, iova, ON_DEMAND)));
	CHECK(resident(memory) == 0);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 0, mr->lkey, iova, SIZE), 0);
	CHECK(resident(memory) == 0);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, mr->lkey, iova + 4095, 4098), 0);
	CHECK(resident(memory) == 3);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, mr->lkey, iova, SIZE), 0);
	CHECK(resident(memory) == PAGES);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, mr->lkey, iova + SIZE, 0), EFAULT);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, mr->lkey, iova, SIZE + 1), EFAULT);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, mr->lkey, iova - 1, 2), EFAULT);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 2, mr->lkey, iova, 2), EINVAL);
	CHECK_RETURNS(advise((enum ibv_advise_mr_advice)9, 0, mr->lkey, iova, 2), EOPNOTSUPP);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, mr->lkey + 1, iova, 2), ENOENT);
	CHECK_RETURNS(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0), EINVAL);
	munmap(memory + SIZE / 2, SIZE / 2);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, mr->lkey, iova, SIZE), EFAULT);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, mr->lkey, iova, SIZE / 2), 0);
	CHECK(mprotect(memory, SIZE / 2, PROT_READ) == 0);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, mr->lkey, iova, 1), EFAULT);
	CHECK((readable = ibv_reg_mr(pd, data, SIZE, IBV_ACCESS_ON_DEMAND)));
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, readable->lkey, (uintptr_t)data, 1), EPERM);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, readable->lkey, (uintptr_t)data, SIZE), 0);
	CHECK((ordinary = ibv_reg_mr(pd, data, SIZE, RIGHTS)));
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, ordinary->lkey, (uintptr_t)data, 1), ENOENT);
	/* and after ibv_rereg_mr it is, or is not */
	CHECK_RETURNS(ibv_rereg_mr(ordinary, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ON_DEMAND), 0);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, ordinary->lkey, (uintptr_t)data, 1), 0);
	CHECK_RETURNS(ibv_rereg_mr(ordinary, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS), 0);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, ordinary->lkey, (uintptr_t)data, 1), ENOENT);
	CHECK((everything = ibv_reg_mr(pd, NULL, SIZE_MAX, ON_DEMAND)));
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, everything->lkey, (uintptr_t)data, SIZE), 0);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, everything->lkey, 0, 1), EFAULT);
	CHECK((other = ibv_alloc_pd(context)));
	sge = (struct ibv_sge){ (uintptr_t)data, 1, everything->lkey };
	CHECK_RETURNS(ibv_advise_mr(other, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EPERM);
	CHECK_RETURNS(ibv_dealloc_pd(other), 0);
	lkey = everything->lkey;
	CHECK_RETURNS(ibv_dereg_mr(everything), 0);
	CHECK_RETURNS(advise(IBV_ADVISE_MR_ADVICE_PREFETCH, 0, lkey, (uintptr_t)data, 1), ENOENT);
	CHECK_RETURNS(ibv_dereg_mr(ordinary), 0);
	CHECK_RETURNS(ibv_dereg_mr(readable), 0);
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
	munmap(memory, SIZE / 2);
}
