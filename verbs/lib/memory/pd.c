/* pd.c - protection domains. */
#include <errno.h>
#include <stdlib.h>

#include "../device/context.h"

URDMA_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct urdma_context *c = urdma_context_of(context);
	struct urdma_abi_handle request = { .handle = c->handle };
	struct urdma_abi_handle response;
	struct ibv_pd *pd = calloc(1, sizeof(*pd));
	int status;

	if (!pd)
		return NULL;
	status = urdma_call(c->client, URDMA_ABI_ALLOC_PD, &request, sizeof(request), &response, sizeof(response));
	if (status) {
		free(pd);
		errno = status;
		return NULL;
	}
	pd->context = context;
	pd->handle = response.handle;
	return pd;
}

/* EBUSY while something was made in it: urdmad counts. */
URDMA_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct urdma_client *client = urdma_context_of(pd->context)->client;
	int status = urdma_call_destroy(client, URDMA_ABI_DEALLOC_PD, pd->handle);

	if (status)
		return status;
	free(pd);
	return 0;
}
