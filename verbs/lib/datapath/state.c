/* state.c - the state of a queue pair, as urdmad reports it, and whether requests may be posted in it. */
#include <errno.h>

#include "objects.h"

int urdma_qp_ask(struct urdma_qp *qp, struct urdma_abi_query_qp_response *response)
{
	struct urdma_abi_handle request = { .handle = qp->ex.qp_base.handle };

	return urdma_call(qp->client, URDMA_ABI_QUERY_QP, &request, sizeof(request), response, sizeof(*response));
}

int urdma_qp_refresh(struct urdma_qp *qp)
{
	struct urdma_abi_query_qp_response response;
	int status = urdma_qp_ask(qp, &response);

	if (!status)
		urdma_qp_set_state(&qp->ex.qp_base, (enum ibv_qp_state)response.attr.qp_state);
	return status;
}

void urdma_qp_set_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	__atomic_store_n(&qp->state, state, __ATOMIC_RELEASE);
}

static bool sends_in(enum ibv_qp_state state)
{
	return state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE || state == IBV_QPS_ERR;
}

/* urdmad knows first when rdma_cm or the peer establishes a connection, so it is asked before a post is
 * refused. */
int urdma_qp_may_send(struct urdma_qp *qp)
{
	if (!urdma_client_alive(qp->client))
		return EIO;
	if (sends_in(qp->ex.qp_base.state) || (urdma_qp_refresh(qp) == 0 && sends_in(qp->ex.qp_base.state)))
		return 0;
	return urdma_client_alive(qp->client) ? EINVAL : EIO;
}

int urdma_qp_may_recv(struct urdma_qp *qp)
{
	if (!urdma_client_alive(qp->client))
		return EIO;
	if (qp->ex.qp_base.state != IBV_QPS_RESET ||
	    (urdma_qp_refresh(qp) == 0 && qp->ex.qp_base.state != IBV_QPS_RESET))
		return 0;
	return urdma_client_alive(qp->client) ? EINVAL : EIO;
}
