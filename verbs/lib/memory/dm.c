/*
 * dm.c - device memory. urdmad's ports have no memory of their own, so it is ordinary memory shared with
 * urdmad. It behaves as programs expect: limited in size, with addresses that begin at 0, and copied in
 * and out in words of 4 bytes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../pages/alloc.h"
#include "memory.h"

#define MOST_ALIGNED 12u /* log2 of the largest alignment */

struct urdma_dm {
	struct ibv_dm dm;
	uint8_t *memory;
	size_t length;  /* as requested */
	uint32_t users; /* number of regions registered in it; atomic */
};

static struct urdma_dm *dm_of(struct ibv_dm *dm)
{
	return (struct urdma_dm *)dm;
}

static bool inside(const struct urdma_dm *dm, uint64_t offset, size_t length)
{
	return offset <= dm->length && length <= dm->length - offset;
}

static int check_copy(const struct urdma_dm *dm, uint64_t offset, size_t length)
{
	if (!inside(dm, offset, length))
		return EFAULT;
	return (offset | length) & 3 ? EINVAL : 0;
}

static int copy_to(struct ibv_dm *ibv, uint64_t offset, const void *from, size_t length)
{
	struct urdma_dm *dm = dm_of(ibv);
	int status = check_copy(dm, offset, length);

	if (!status)
		memcpy(dm->memory + offset, from, length);
	return status;
}

static int copy_from(void *to, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
	const struct urdma_dm *dm = dm_of(ibv);
	int status = check_copy(dm, offset, length);

	if (!status)
		memcpy(to, dm->memory + offset, length);
	return status;
}

/* Reserves length bytes of the context's device memory. */
static bool take(struct urdma_context *c, size_t length)
{
	if (length > URDMA_MAX_DM)
		return false;
	if (__atomic_add_fetch(&c->device_memory, length, __ATOMIC_RELAXED) <= URDMA_MAX_DM)
		return true;
	__atomic_fetch_sub(&c->device_memory, length, __ATOMIC_RELAXED);
	return false;
}

static void give(struct urdma_context *c, size_t length)
{
	__atomic_fetch_sub(&c->device_memory, length, __ATOMIC_RELAXED);
}

static struct urdma_dm *make(size_t length)
{
	struct urdma_dm *dm = calloc(1, sizeof(*dm));

	if (!dm)
		return NULL;
	dm->memory = urdma_alloc(length);
	if (!dm->memory) {
		free(dm);
		return NULL;
	}
	dm->length = length;
	return dm;
}

struct ibv_dm *urdma_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct urdma_context *c = urdma_context_of(context);
	struct urdma_dm *dm;

	if (attr->comp_mask || !attr->length || attr->log_align_req > MOST_ALIGNED) {
		errno = EINVAL;
		return NULL;
	}
	if (!take(c, attr->length)) {
		errno = ENOMEM;
		return NULL;
	}
	dm = make(attr->length);
	if (!dm) {
		give(c, attr->length);
		errno = ENOMEM;
		return NULL;
	}
	dm->dm.context = context;
	dm->dm.memcpy_to_dm = copy_to;
	dm->dm.memcpy_from_dm = copy_from;
	return &dm->dm;
}

/* EBUSY while regions in it are registered. */
int urdma_free_dm(struct ibv_dm *ibv)
{
	struct urdma_dm *dm = dm_of(ibv);

	if (__atomic_load_n(&dm->users, __ATOMIC_RELAXED))
		return urdma_status(EBUSY);
	urdma_free(dm->memory);
	give(urdma_context_of(ibv->context), dm->length);
	free(dm);
	return 0;
}

struct ibv_mr *urdma_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset, size_t length,
	unsigned int access)
{
	struct urdma_dm *dm = dm_of(ibv);
	struct ibv_mr *mr;

	if (pd->context != ibv->context || !(access & IBV_ACCESS_ZERO_BASED) || (access & IBV_ACCESS_ON_DEMAND) ||
	    !inside(dm, offset, length)) {
		errno = EINVAL;
		return NULL;
	}
	__atomic_fetch_add(&dm->users, 1, __ATOMIC_RELAXED);
	mr = urdma_reg_part(pd, dm->memory + offset, length, access, &dm->users);
	if (!mr)
		__atomic_fetch_sub(&dm->users, 1, __ATOMIC_RELAXED);
	return mr;
}
