/*
 * pd.c - protection domains, parent domains and thread domains. A parent domain refers to a protection
 * domain and may name a thread domain. Using one thread only makes nothing faster here, so both kinds have
 * no effect.
 */
#include <errno.h>
#include <stdlib.h>

#include "memory.h"

struct urdma_td {
	struct ibv_td td;
	uint32_t parents; /* atomic */
};

static struct urdma_pd *pd_of(const struct ibv_pd *pd)
{
	return (struct urdma_pd *)pd;
}

URDMA_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct urdma_context *c = urdma_context_of(context);
	struct urdma_abi_handle request = { .handle = c->handle };
	struct urdma_abi_handle response;
	struct urdma_pd *pd = calloc(1, sizeof(*pd));
	int status;

	if (!pd)
		return NULL;
	status = urdma_call(c->client, URDMA_ABI_ALLOC_PD, &request, sizeof(request), &response, sizeof(response));
	if (status) {
		free(pd);
		errno = status;
		return NULL;
	}
	pd->pd.context = context;
	pd->pd.handle = response.handle;
	return &pd->pd;
}

static void free_parent(struct urdma_pd *pd)
{
	__atomic_fetch_sub(&pd->of->users, 1, __ATOMIC_RELAXED);
	if (pd->td)
		__atomic_fetch_sub(&pd->td->parents, 1, __ATOMIC_RELAXED);
	free(pd);
}

/* EBUSY while objects of the domain exist. urdmad counts them, except for parent domains and address
 * handles. */
URDMA_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct urdma_client *client = urdma_context_of(ibv->context)->client;
	struct urdma_pd *pd = pd_of(ibv);
	int status;

	if (pd->of) {
		free_parent(pd);
		return 0;
	}
	if (__atomic_load_n(&pd->users, __ATOMIC_RELAXED))
		return urdma_status(EBUSY);
	status = urdma_call_destroy(client, URDMA_ABI_DEALLOC_PD, ibv->handle);
	if (status)
		return status;
	free(pd);
	return 0;
}

/* Objects created with a parent domain belong to its protection domain. A custom allocator is never
 * called: queues are in memory shared with urdmad. */
struct ibv_pd *urdma_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	struct urdma_pd *of = pd_of(attr->pd), *pd;

	if (attr->comp_mask & ~(uint32_t)(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) ||
	    !of || of->of || of->pd.context != context || (attr->td && attr->td->context != context)) {
		errno = EINVAL;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	*pd = (struct urdma_pd){ .pd = of->pd, .of = of, .td = (struct urdma_td *)attr->td };
	__atomic_fetch_add(&of->users, 1, __ATOMIC_RELAXED);
	if (pd->td)
		__atomic_fetch_add(&pd->td->parents, 1, __ATOMIC_RELAXED);
	return &pd->pd;
}

bool urdma_pd_is_parent(const struct ibv_pd *pd, const struct ibv_context *context)
{
	return pd && pd_of(pd)->of && pd->context == context;
}

struct ibv_td *urdma_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct urdma_td *td;

	if (attr->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->td.context = context;
	return &td->td;
}

int urdma_dealloc_td(struct ibv_td *ibv)
{
	struct urdma_td *td = (struct urdma_td *)ibv;

	if (__atomic_load_n(&td->parents, __ATOMIC_RELAXED))
		return urdma_status(EBUSY);
	free(td);
	return 0;
}
