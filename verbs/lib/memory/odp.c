/*
 * odp.c - on-demand paging. A region holds no pages: urdmad looks for each page when it needs it, so
 * advice only makes the program's own pages present.
 */
#include <errno.h>

#include "memory.h"

/* The answers of rdma-core's kernel drivers where ibv_advise_mr(3) names several. */
static int check(const struct ibv_pd *pd, const struct urdma_mr *m, const struct ibv_sge *sge, bool writes)
{
	uint64_t first;

	if (!m)
		return ENOENT;
	if (m->mr.pd->handle != pd->handle || (writes && !(m->access & IBV_ACCESS_LOCAL_WRITE)))
		return EPERM;
	first = m->access & IBV_ACCESS_ZERO_BASED ? 0 : m->iova;
	if (sge->addr < first || sge->addr - first > m->mr.length || sge->length > m->mr.length - (sge->addr - first))
		return EFAULT;
	return 0;
}

/* Checks an element of the list, and translates it to the program's address. */
static int locate(const struct ibv_pd *pd, const struct ibv_sge *sge, bool writes, uint64_t *addr)
{
	struct urdma_client *client = urdma_context_of(pd->context)->client;
	const struct urdma_mr *m;
	int status;

	urdma_handles_lock(client);
	m = urdma_handles_find(client, URDMA_KIND_ON_DEMAND, sge->lkey);
	status = check(pd, m, sge, writes);
	if (!status)
		*addr = (uintptr_t)m->mr.addr + (sge->addr - (m->access & IBV_ACCESS_ZERO_BASED ? 0 : m->iova));
	urdma_handles_unlock(client);
	return status;
}

int urdma_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *list,
		    uint32_t n)
{
	bool writes = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	uint64_t addr;
	int status = 0;

	if (urdma_client_state(urdma_context_of(pd->context)->client) == URDMA_CLIENT_FORKED)
		return urdma_status(EIO);
	if (!urdma_context_of(pd->context)->on_demand ||
	    (!writes && advice != IBV_ADVISE_MR_ADVICE_PREFETCH && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT))
		return urdma_status(EOPNOTSUPP);
	if (!n || (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH))
		return urdma_status(EINVAL);
	for (uint32_t i = 0; i < n && !status; i++)
		status = locate(pd, &list[i], writes, &addr);
	for (uint32_t i = 0; i < n && !status && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT; i++) {
		status = locate(pd, &list[i], writes, &addr);
		if (!status)
			status = urdma_pages_prefetch(addr, list[i].length, writes ? URDMA_PAGES_WRITE : 0);
	}
	return urdma_status(status);
}

bool urdma_odp_supported(const struct urdma_client *client)
{
	static int mappings; /* 1: the kernel answers for them, 2: it does not */
	int before = errno, known = __atomic_load_n(&mappings, __ATOMIC_RELAXED), fd;

	if (!known) {
		fd = urdma_pages_mappings();
		known = fd >= 0 ? 1 : errno == EMFILE || errno == ENFILE ? 0 : 2;
		if (fd >= 0)
			urdma_close(fd);
		__atomic_store_n(&mappings, known, __ATOMIC_RELAXED);
		errno = before;
	}
	return client->memory_given && known == 1;
}
