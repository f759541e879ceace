/* poll.c - takes completions out of a ring. */
#include <errno.h>

#include "objects.h"

/* Empty polls between two checks that urdmad runs. A check is one ppoll(2), about 0.3 µs; a program that
 * spins notices the end of urdmad within about a millisecond. */
#define CHECK_EVERY 16384u

/* Frees the slots of the queue pair that a completion covers. Returns false for a completion that came
 * after its request was flushed: a connection can end before urdmad does. */
static bool note_polled(struct urdma_cq *cq, const struct urdma_abi_cqe *e)
{
	struct urdma_qp *qp = e->user_handle ? urdma_pairs_find(cq->client, e->user_handle) : NULL;
	struct urdma_queue *queue;

	if (!qp || ((e->opcode & IBV_WC_RECV) && qp->ex.qp_base.srq))
		return true; /* a shared receive queue's slots are freed when urdmad copies them */
	queue = urdma_queue_of(qp, e);
	if (urdma_client_state(cq->client) == URDMA_CLIENT_GONE && urdma_queue_was_lost(queue, e->index))
		return false;
	urdma_queue_polled(queue, e->index);
	return true;
}

/* The acquire pairs with urdmad's store of prod, which follows the entry. */
static bool take_from_ring(struct urdma_cq *cq, struct urdma_abi_cqe *out)
{
	uint32_t prod = urdma_cq_produced(cq);

	while (cq->cons != prod) {
		*out = cq->entries[cq->cons & cq->mask];
		cq->cons++;
		if (note_polled(cq, out))
			return true;
	}
	return false;
}

bool urdma_cq_take(struct urdma_cq *cq, struct urdma_abi_cqe *out)
{
	if (take_from_ring(cq, out))
		return true;
	return !urdma_client_alive(cq->client) && urdma_flush_take(cq, out);
}

/* The remaining completions move up towards prod, which only urdmad writes. Does nothing in a child,
 * because the ring is the parent's, nor in memory that another queue may use by now. */
void urdma_cq_forget(struct urdma_cq *cq, uint32_t qp_num)
{
	uint32_t prod, freed = 0;
	int taken;

	if (urdma_client_state(cq->client) == URDMA_CLIENT_FORKED || cq->returned)
		return;
	taken = urdma_lock_take(&cq->lock);
	prod = urdma_cq_produced(cq);
	for (uint32_t i = prod; i-- != cq->cons;) {
		if (cq->entries[i & cq->mask].qp_num == qp_num)
			freed++;
		else if (freed)
			cq->entries[(i + freed) & cq->mask] = cq->entries[i & cq->mask];
	}
	cq->cons += freed;
	__atomic_store_n(&cq->ring->cons, cq->cons, __ATOMIC_RELEASE);
	urdma_lock_drop(&cq->lock, taken);
}

void urdma_qp_forget(struct urdma_qp *qp)
{
	struct ibv_qp *base = &qp->ex.qp_base;

	if (base->send_cq)
		urdma_cq_forget(urdma_cq_of(base->send_cq), base->qp_num);
	if (base->recv_cq && base->recv_cq != base->send_cq)
		urdma_cq_forget(urdma_cq_of(base->recv_cq), base->qp_num);
}

bool urdma_cq_empty(struct urdma_cq *cq)
{
	bool yielded = urdma_yield_empty_poll(cq);

	URDMA_STORE(cq->since_check, URDMA_LOAD(cq->since_check) + 1);
	if (URDMA_LOAD(cq->since_check) >= CHECK_EVERY) {
		URDMA_STORE(cq->since_check, 0);
		urdma_client_probe(cq->client);
	}
	return yielded;
}

void urdma_cq_found(struct urdma_cq *cq)
{
	urdma_yield_found();
	URDMA_STORE(cq->since_check, 0);
	if (URDMA_LOAD(cq->bells->poller))
		URDMA_STORE(cq->bells->poller, 0);
}

static void to_wc(const struct urdma_cq *cq, const struct urdma_abi_cqe *e, struct ibv_wc *wc)
{
	wc->wr_id = e->wr_id;
	wc->status = (enum ibv_wc_status)e->status;
	wc->opcode = (enum ibv_wc_opcode)e->opcode;
	wc->vendor_err = e->vendor_err;
	wc->byte_len = e->byte_len;
	wc->imm_data = e->imm_or_stag;
	wc->qp_num = e->qp_num;
	wc->src_qp = e->src_qp;
	wc->wc_flags = urdma_cq_wc_flags(cq, e);
	wc->pkey_index = 0;
	wc->slid = urdma_cq_slid(cq, e);
	wc->sl = urdma_cq_sl(cq, e);
	wc->dlid_path_bits = 0;
}

bool urdma_cq_overran(const struct urdma_cq *cq)
{
	return !cq->ignore_overrun && __atomic_load_n(&cq->ring->overrun, __ATOMIC_RELAXED);
}

/* Returns the number of completions taken, or -1 with errno set. */
static int poll_once(struct urdma_cq *cq, int num_entries, struct ibv_wc *wc)
{
	struct urdma_abi_cqe e;
	int n = 0, taken = urdma_lock_take(&cq->lock);
	bool overran;

	URDMA_STORE(cq->polled, true);
	while (n < num_entries && urdma_cq_take(cq, &e))
		to_wc(cq, &e, &wc[n++]);
	/* Release: after this store urdmad may overwrite the entries. */
	__atomic_store_n(&cq->ring->cons, cq->cons, __ATOMIC_RELEASE);
	overran = n == 0 && urdma_cq_overran(cq);
	urdma_lock_drop(&cq->lock, taken);
	if (overran)
		return urdma_fail(EOVERFLOW);
	if (n)
		urdma_cq_found(cq);
	return n;
}

void urdma_cq_explain_overrun(struct urdma_cq *cq)
{
	enum { OVERRUN = 0x0504 }; /* the number of this cause in package reason */

	if (urdma_explain_wanted && !__atomic_exchange_n(&cq->explained, true, __ATOMIC_RELAXED))
		urdma_explain(cq->client, 0, OVERRUN);
}

static void explain_failed(struct urdma_cq *cq, int n, const struct ibv_wc *wc)
{
	if (n < 0)
		urdma_cq_explain_overrun(cq);
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			urdma_cq_explain(cq, wc[i].qp_num, wc[i].vendor_err);
	}
}

void urdma_cq_explain(struct urdma_cq *cq, uint32_t qp_num, uint32_t vendor_err)
{
	if (vendor_err < URDMA_ABI_ENDS_FIRST || vendor_err > URDMA_ABI_ENDS_LAST)
		urdma_explain(cq->client, qp_num, vendor_err);
}

int urdma_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct urdma_cq *cq = urdma_cq_of(ibv);
	int n;

	if (urdma_client_state(cq->client) == URDMA_CLIENT_FORKED)
		return urdma_fail(EIO);
	n = poll_once(cq, num_entries, wc);
	/* During a yield urdmad may have delivered the completion. */
	if (!n && urdma_client_state(cq->client) == URDMA_CLIENT_LIVE && urdma_cq_empty(cq))
		n = poll_once(cq, num_entries, wc);
	if (urdma_explain_wanted)
		explain_failed(cq, n, wc);
	return n;
}
