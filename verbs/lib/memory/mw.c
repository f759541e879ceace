/* mw.c - allocates and deallocates memory windows, and binds those of type 1. Windows of type 2 are bound
 * by work requests (datapath/window.c). */
#include <errno.h>
#include <stdlib.h>

#include "memory.h"

struct ibv_mw *urdma_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct urdma_client *client = urdma_context_of(pd->context)->client;
	struct urdma_abi_alloc_mw request = { .pd = pd->handle, .type = type };
	struct urdma_abi_alloc_mw_response response;
	struct ibv_mw *mw = calloc(1, sizeof(*mw));
	int status;

	if (!mw)
		return NULL;
	status = urdma_call(client, URDMA_ABI_ALLOC_MW, &request, sizeof(request), &response, sizeof(response));
	if (status) {
		free(mw);
		errno = status;
		return NULL;
	}
	*mw = (struct ibv_mw){ .context = pd->context, .pd = pd, .rkey = response.rkey, .handle = response.handle,
			       .type = type };
	return mw;
}

/* Also unbinds the window. */
int urdma_dealloc_mw(struct ibv_mw *mw)
{
	struct urdma_client *client = urdma_context_of(mw->context)->client;
	int status = urdma_call_destroy(client, URDMA_ABI_DEALLOC_MW, mw->handle);

	if (!status)
		free(mw);
	return urdma_status(status);
}

int urdma_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = bind->send_flags,
		.bind_mw = { .mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = bind->bind_info },
	};

	return urdma_status(urdma_post_send(qp, &wr, &bad));
}
