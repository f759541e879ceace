/*
 * external.c - queue pairs that a program made itself and names in connect
 * or accept by their number.
 *
 * It reads the connection's handle table, which is keyed by handle: a search
 * a connection is cheap enough, and nothing else asks by number.
 */
#include "../client.h"
#include "cm.h"

static struct ibv_qp *find(struct urdma_client *client, uint32_t qp_num)
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

uint32_t cm_external_qp(struct cm_id *id, uint32_t qp_num)
{
	struct ibv_qp *qp;

	urdma_handles_lock(id->client);
	qp = qp_num ? find(id->client, qp_num) : NULL;
	id->external_qp = urdma_qp_handle(qp);
	urdma_handles_unlock(id->client);
	return id->external_qp;
}

void cm_qp_moved(struct cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp *qp = id->public.qp;

	if (qp) {
		urdma_qp_set_state(qp, state);
		return;
	}
	if (id->external_qp == URDMA_ABI_NO_HANDLE)
		return;
	/* The program may be destroying it: the table's lock holds it off. */
	urdma_handles_lock(id->client);
	qp = urdma_handles_find(id->client, URDMA_KIND_QP, id->external_qp);
	if (qp)
		urdma_qp_set_state(qp, state);
	urdma_handles_unlock(id->client);
}
