/*
 * qpstate.c - finds the queue pair of a connection by its handle.
 *
 * Programs destroy a queue pair while another thread reads the connection's last event, some of them with
 * ibv_destroy_qp, which leaves id->qp as it was. So events do not use that pointer: they look up the
 * handle, and the handle table's lock prevents destruction while the state is written.
 */
#include "../session/client.h"
#include "cm.h"

/* The table's key is the handle. A program names its own queue pair by number, so it is searched for. This
 * happens once for each connection. */
static struct ibv_qp *find_by_number(struct urdma_client *client, uint32_t qp_num)
{
	struct urdma_handle *entry;
	struct ibv_qp *qp;

	for (unsigned i = 0; i < URDMA_HANDLE_BUCKETS; i++) {
		for (entry = client->handles[i]; entry; entry = entry->next) {
			if (entry->kind != URDMA_KIND_QP)
				continue;
			qp = entry->object;
			if (qp->qp_num == qp_num)
				return qp;
		}
	}
	return NULL;
}

uint32_t cm_qp_named(struct cm_id *id, uint32_t qp_num)
{
	struct ibv_qp *qp;
	uint32_t handle;

	if (id->public.qp)
		return urdma_qp_handle(id->public.qp);
	urdma_handles_lock(id->client);
	qp = qp_num ? find_by_number(id->client, qp_num) : NULL;
	handle = urdma_qp_handle(qp);
	urdma_handles_unlock(id->client);
	return handle;
}

void cm_qp_moved(struct cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp *qp;

	if (id->qp_handle == URDMA_ABI_NO_HANDLE)
		return;
	urdma_handles_lock(id->client);
	qp = urdma_handles_find(id->client, URDMA_KIND_QP, id->qp_handle);
	if (qp)
		urdma_qp_set_state(qp, state);
	urdma_handles_unlock(id->client);
}
