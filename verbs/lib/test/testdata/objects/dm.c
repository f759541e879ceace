/* dm.c - device memory: limited, copied by words, registered zero-based. */
#include <stdlib.h>

#include "objects.h"

#define SIZE 10000u

static struct ibv_dm *new_dm(size_t length)
{
	return ibv_alloc_dm(context, &(struct ibv_alloc_dm_attr){ .length = length });
}

/* A Write from a region of device memory to another one, and a Read of it back. */
void case_device_memory(void)
{
	unsigned int access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		IBV_ACCESS_REMOTE_READ;
	struct ibv_dm *from = new_dm(SIZE), *to = new_dm(SIZE);
	struct ibv_mr *source = ibv_reg_dm_mr(pd, from, 0, SIZE, IBV_ACCESS_ZERO_BASED);
	struct ibv_mr *sink = ibv_reg_dm_mr(pd, to, 4000, 3000, access);
	uint8_t *data = calloc(1, SIZE), *got = calloc(1, SIZE);
	struct ibv_sge sge = { 500, 3000, 0 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED };
	struct end near, far;

	CHECK(source && sink && source->lkey != sink->lkey);
	pair_up(&near, &far, IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (uint8_t)(i * 7);
	CHECK_RETURNS(ibv_memcpy_to_dm(from, 0, data, SIZE), 0);
	sge.lkey = source->lkey;
	wr.wr.rdma.rkey = sink->rkey;
	CHECK_RETURNS(post(&near, &wr), 0);
	completion(&near, IBV_WC_SUCCESS);
	CHECK_RETURNS(ibv_memcpy_from_dm(got, to, 4000, 3000), 0);
	CHECK(memcmp(got, data + 500, 3000) == 0);

	sge = (struct ibv_sge){ (uintptr_t)near.memory, 100, near.mr->lkey };
	wr.opcode = IBV_WR_RDMA_READ;
	wr.wr.rdma.remote_addr = 2900;
	CHECK_RETURNS(post(&near, &wr), 0);
	completion(&near, IBV_WC_SUCCESS);
	CHECK(memcmp(near.memory, data + 3400, 100) == 0);
	wr.wr.rdma.remote_addr = 2901; /* one byte too far */
	CHECK_RETURNS(post(&near, &wr), 0);
	completion(&near, IBV_WC_REM_ACCESS_ERR);

	CHECK_RETURNS(ibv_free_dm(to), EBUSY);
	CHECK_RETURNS(ibv_dereg_mr(sink), 0);
	CHECK_RETURNS(ibv_dereg_mr(source), 0);
	CHECK_RETURNS(ibv_free_dm(to), 0);
	CHECK_RETURNS(ibv_free_dm(from), 0);
	end_free(&near);
	end_free(&far);
	free(data);
	free(got);
}

static void refuses_copies(struct ibv_dm *dm)
{
	uint8_t bytes[16];

	CHECK(ibv_memcpy_to_dm(dm, 2, bytes, 4) == EINVAL && ibv_memcpy_to_dm(dm, 4, bytes, 3) == EINVAL);
	CHECK(ibv_memcpy_to_dm(dm, SIZE, bytes, 4) == EFAULT && ibv_memcpy_to_dm(dm, UINT64_MAX - 3, bytes, 4) == EFAULT);
	CHECK(ibv_memcpy_from_dm(bytes, dm, 1, 4) == EINVAL && ibv_memcpy_from_dm(bytes, dm, SIZE - 4, 8) == EFAULT);
	CHECK(ibv_memcpy_from_dm(bytes, dm, SIZE, 0) == 0);
}

void case_device_memory_refused(void)
{
	struct ibv_alloc_dm_attr aligned = { .length = 4, .log_align_req = 40 }, masked = { .length = 4, .comp_mask = 1 };
	struct ibv_device_attr_ex device;
	struct ibv_dm *dm, *rest;
	struct ibv_mr *mr;

	CHECK_RETURNS(ibv_query_device_ex(context, NULL, &device), 0);
	CHECK(device.max_dm_size > SIZE);
	CHECK_NULL(ibv_alloc_dm(context, &aligned), EINVAL);
	CHECK_NULL(ibv_alloc_dm(context, &masked), EINVAL);
	CHECK_NULL(new_dm(0), EINVAL);
	CHECK_NULL(new_dm(device.max_dm_size + 1), ENOMEM);
	CHECK_NULL(new_dm(SIZE_MAX), ENOMEM);
	CHECK((dm = new_dm(SIZE)));
	CHECK_NULL(new_dm(device.max_dm_size - SIZE + 1), ENOMEM);
	CHECK((rest = new_dm(device.max_dm_size - SIZE)));
	CHECK_RETURNS(ibv_free_dm(rest), 0);
	refuses_copies(dm);
	CHECK_NULL(ibv_reg_dm_mr(pd, dm, 0, SIZE, IBV_ACCESS_LOCAL_WRITE), EINVAL); /* not zero-based */
	CHECK_NULL(ibv_reg_dm_mr(pd, dm, 4, SIZE, IBV_ACCESS_ZERO_BASED), EINVAL);
	CHECK((mr = ibv_reg_dm_mr(pd, dm, SIZE, 0, IBV_ACCESS_ZERO_BASED))); /* an empty region */
	CHECK_RETURNS(ibv_free_dm(dm), EBUSY);
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
	CHECK_RETURNS(ibv_free_dm(dm), 0);
	CHECK((dm = new_dm(4)) && (mr = ibv_reg_dm_mr(pd, dm, 0, 4, IBV_ACCESS_ZERO_BASED)));
	errno = 0;
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT && errno == EOPNOTSUPP);
	CHECK_RETURNS(ibv_dereg_mr(mr), 0);
	CHECK_RETURNS(ibv_free_dm(dm), 0);
}
