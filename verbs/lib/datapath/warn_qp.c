/* warn_qp.c - mistakes with states and destruction of queue pairs, see warn.h. */
#include "warn_rings.h"

static void tell_unready(struct urdma_qp *qp, const struct urdma_abi_query_qp_response *now)
{
	if (now->unready)
		urdma_warn(qp->client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_UNREADY, "%u receives are posted now",
			posted(&qp->rq));
}

void urdma_warn_ready(struct urdma_qp *qp)
{
	struct urdma_abi_query_qp_response now;

	if (urdma_client_alive(qp->client) && urdma_qp_ask(qp, &now) == 0)
		tell_unready(qp, &now);
}

static void check_reads(struct urdma_qp *qp, const struct urdma_abi_query_qp_response *now)
{
	if (now->attr.max_rd_atomic > now->peer_reads)
		urdma_warn(qp->client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_RD_ATOMIC,
			"max_rd_atomic is %u, and max_dest_rd_atomic of the peer %u",
			   now->attr.max_rd_atomic, now->peer_reads);
}

/* Returns the status of an unpolled completion that says why the queue pair failed. */
static uint32_t unread(struct urdma_cq *cq, uint32_t qpn)
{
	uint32_t prod, status = 0;
	int taken;

	if (!cq)
		return 0;
	taken = urdma_warn_lock(cq);
	prod = urdma_cq_produced(cq);
	for (uint32_t i = cq->cons; i != prod && !status; i++)
		if (cq->entries[i & cq->mask].qp_num == qpn && cq->entries[i & cq->mask].status != IBV_WC_WR_FLUSH_ERR)
			status = cq->entries[i & cq->mask].status;
	urdma_lock_drop(&cq->lock, taken);
	return status;
}

void urdma_warn_destroys(struct urdma_qp *qp)
{
	struct ibv_qp *base = &qp->ex.qp_base;
	struct urdma_abi_query_qp_response now;
	uint32_t status, sends;

	urdma_warn_setup();
	if (!base->send_cq || urdma_client_state(qp->client) != URDMA_CLIENT_LIVE || urdma_qp_ask(qp, &now))
		return;
	check_reads(qp, &now);
	if (qp->rq.depth && !posted(&qp->rq))
		tell_unready(qp, &now);
	sends = qp->sq.depth ? posted(&qp->sq) - undone(&qp->sq) : 0;
	if (sends && works_in(now.attr.qp_state))
		urdma_warn(qp->client, base->qp_num, URDMA_ABI_PITFALL_DESTROYED, "%u sends", sends);
	status = unread(urdma_cq_of(base->send_cq), base->qp_num);
	if (!status)
		status = unread(urdma_cq_of(base->recv_cq), base->qp_num);
	if (status)
		urdma_warn(qp->client, base->qp_num, URDMA_ABI_PITFALL_UNREAD, "status %u, %s", status,
			ibv_wc_status_str((enum ibv_wc_status)status));
}

void urdma_warn_modified(struct urdma_qp *qp, const struct urdma_abi_query_qp_response *now, int mask)
{
	const struct urdma_abi_qp_attr *attr = &now->attr;
	uint32_t qpn = qp->ex.qp_base.qp_num;

	if ((mask & IBV_QP_TIMEOUT) && !attr->timeout)
		urdma_warn(qp->client, qpn, URDMA_ABI_PITFALL_TIMEOUT, "attr.timeout");
	if ((mask & IBV_QP_RETRY_CNT) && !attr->retry_cnt)
		urdma_warn(qp->client, qpn, URDMA_ABI_PITFALL_RETRY, "attr.retry_cnt");
	if (!qp->datagram && (mask & IBV_QP_SQ_PSN) && !attr->sq_psn && !attr->rq_psn)
		urdma_warn(qp->client, qpn, URDMA_ABI_PITFALL_PSN, "attr.sq_psn");
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		check_reads(qp, now);
}
