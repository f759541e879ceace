/*
 * pollex.c - the extended polling interface: ibv_start_poll takes the queue's lock, which ibv_end_poll
 * releases; one completion is shown at a time.
 */
#include <errno.h>
#include <time.h>

#include "objects.h"
#include "warn.h"

static struct urdma_cq *of(struct ibv_cq_ex *ex)
{
	return (struct urdma_cq *)ex;
}

static void failed(struct urdma_cq *cq)
{
	if (urdma_explain_wanted)
		urdma_cq_explain(cq, cq->now.qp_num, cq->now.vendor_err);
	if (urdma_warn_wanted)
		urdma_warn_failed(cq, cq->now.qp_num, cq->now.status);
	if (cq->client->strict)
		urdma_strict_failed(cq);
}

static int show_next(struct urdma_cq *cq)
{
	if (!urdma_cq_take(cq, &cq->now))
		return ENOENT;
	cq->ex.wr_id = cq->now.wr_id;
	cq->ex.status = (enum ibv_wc_status)cq->now.status;
	if (cq->ex.status != IBV_WC_SUCCESS)
		failed(cq);
	return 0;
}

static void finish(struct urdma_cq *cq)
{
	if (urdma_client_state(cq->client) != URDMA_CLIENT_FORKED) /* forked in the middle of a poll */
		__atomic_store_n(&cq->ring->cons, cq->cons, __ATOMIC_RELEASE);
	URDMA_STORE(cq->poller, 0);
	urdma_lock_drop(&cq->lock, cq->polling);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

struct measured {
	int64_t least, most;
};

/* Returns bounds for CLOCK_REALTIME minus CLOCK_MONOTONIC. Both clocks round. */
static struct measured measure_clocks(void)
{
	int64_t before = clock_ns(CLOCK_MONOTONIC), wall = clock_ns(CLOCK_REALTIME), after = clock_ns(CLOCK_MONOTONIC);

	return (struct measured){ wall - after - 1, wall - before + 1 };
}

/* The difference changes only when a clock is set. The known difference is kept as long as it may be
 * correct, so that times do not go backwards. */
static void know_clocks(struct urdma_cq *cq)
{
	struct measured m = measure_clocks(), best = m;

	if (cq->wall_error_ns && m.least - cq->wall_error_ns <= cq->wall_ns && cq->wall_ns <= m.most + cq->wall_error_ns)
		return;
	for (int i = 0; i < 8; i++) { /* any single measurement may be interrupted */
		m = measure_clocks();
		if (m.most - m.least < best.most - best.least)
			best = m;
	}
	cq->wall_ns = best.least;
	cq->wall_error_ns = best.most - best.least;
}

/* If this fails, with ENOENT too, the caller does not call ibv_end_poll. */
static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct urdma_cq *cq = of(ex);
	bool overran;
	int status;

	if (attr->comp_mask)
		return EINVAL;
	if (urdma_client_state(cq->client) == URDMA_CLIENT_FORKED)
		return EIO;
	cq->polling = urdma_lock_keep(&cq->lock);
	URDMA_STORE(cq->poller, pthread_self());
	URDMA_STORE(cq->polled, true);
	URDMA_STORE(cq->unpolled, 0);
	status = show_next(cq);
	if (!status) {
		if (ex->read_completion_wallclock_ns)
			know_clocks(cq);
		urdma_cq_found(cq);
		return 0;
	}
	overran = urdma_cq_overran(cq);
	finish(cq);
	if (overran) {
		urdma_cq_explain_overrun(cq);
		return EOVERFLOW;
	}
	urdma_cq_empty(cq);
	return status;
}

static int start_strictly(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	int status = urdma_strict_early(of(ex)) ? ENOENT : start_poll(ex, attr);

	if (!status)
		urdma_strict_found(of(ex));
	return status;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return urdma_client_state(of(ex)->client) == URDMA_CLIENT_FORKED ? ENOENT : show_next(of(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	finish(of(ex));
}

/* Defines a function that reads a field of the completion shown. */
#define READ(type, field, value)                                \
	static type read_##field(struct ibv_cq_ex *ex)          \
	{                                                       \
		const struct urdma_cq *cq = of(ex);             \
		const struct urdma_abi_cqe *now = &cq->now;     \
                                                                \
		return value;                                   \
	}

READ(enum ibv_wc_opcode, opcode, now->opcode)
READ(uint32_t, vendor_err, now->vendor_err)
READ(uint32_t, byte_len, now->byte_len)
READ(__be32, imm_data, now->imm_or_stag)
READ(uint32_t, qp_num, now->qp_num)
READ(uint32_t, src_qp, now->src_qp)
READ(unsigned int, wc_flags, urdma_cq_wc_flags(cq, now))
READ(uint8_t, sl, urdma_cq_sl(cq, now))
READ(uint32_t, slid, urdma_cq_slid(cq, now))
READ(uint64_t, timestamp, now->timestamp)
READ(uint64_t, wallclock, now->timestamp + (uint64_t)cq->wall_ns)

/* Path bits exist in InfiniBand only; ours are 0. */
static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

void urdma_pollex_fill(struct ibv_cq_ex *cq, uint64_t wc_flags)
{
	cq->start_poll = of(cq)->client->strict ? start_strictly : start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_wc_flags = read_wc_flags;
	cq->read_byte_len = read_byte_len;
	cq->read_imm_data = read_imm_data;
	cq->read_qp_num = read_qp_num;
	cq->read_src_qp = read_src_qp;
	cq->read_slid = read_slid;
	cq->read_sl = read_sl;
	cq->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cq->read_completion_ts = read_timestamp;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cq->read_completion_wallclock_ns = read_wallclock;
}
