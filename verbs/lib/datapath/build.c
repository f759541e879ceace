/*
 * build.c - the extended posting interface, ibv_wr_*. From ibv_wr_start to ibv_wr_complete the send
 * queue's lock is held and slots are filled in place. ibv_wr_complete publishes them all, or none if any
 * request was wrong.
 */
#include <errno.h>
#include <string.h>

#include "objects.h"
#include "warn.h"

#define SEND_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

static struct urdma_qp *of(struct ibv_qp_ex *ex)
{
	return (struct urdma_qp *)ex;
}

static void fail(struct urdma_qp *qp, int error)
{
	if (!qp->builder.error)
		qp->builder.error = error;
	qp->builder.slot = NULL;
}

static void start(struct ibv_qp_ex *ex)
{
	struct urdma_qp *qp = of(ex);
	int status = urdma_qp_may_send(qp);

	qp->builder.taken = urdma_lock_keep(&qp->sq.lock);
	qp->builder.first = qp->sq.prod;
	qp->builder.error = status;
	qp->builder.slot = NULL;
}

/* Begins a request, with the wr_id and flags that the program stored in ex. */
static struct urdma_abi_sqe *begin(struct urdma_qp *qp, enum ibv_wr_opcode opcode)
{
	struct urdma_abi_sqe *slot;

	if (urdma_client_state(qp->client) == URDMA_CLIENT_FORKED) /* forked since ibv_wr_start */
		fail(qp, EIO);
	if (qp->builder.error)
		return NULL;
	slot = urdma_queue_slot(&qp->sq);
	if (!slot || (qp->ex.wr_flags & ~(unsigned int)SEND_FLAGS)) {
		fail(qp, slot ? EINVAL : ENOMEM);
		return NULL;
	}
	memset(slot, 0, sizeof(*slot));
	slot->wr_id = qp->ex.wr_id;
	slot->opcode = opcode;
	/* The function that sets the data decides whether it is inline. */
	slot->flags = qp->ex.wr_flags & ~(unsigned int)IBV_SEND_INLINE;
	qp->builder.slot = slot;
	qp->sq.prod++;
	return slot;
}

static void begin_remote(struct urdma_qp *qp, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t remote_addr)
{
	struct urdma_abi_sqe *slot = begin(qp, opcode);

	if (!slot)
		return;
	slot->rkey = rkey;
	slot->remote_addr = remote_addr;
}

static void rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(of(ex), IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(of(ex), IBV_WR_RDMA_READ, rkey, remote_addr);
}

/* Operations with a value: immediate data, or the STag to invalidate. */
#define WITH_VALUE(name, opcode)                                  \
	static void name(struct ibv_qp_ex *ex, uint32_t value)    \
	{                                                         \
		struct urdma_abi_sqe *slot = begin(of(ex), opcode); \
                                                                  \
		if (slot)                                         \
			slot->imm_or_stag = value;                \
	}

WITH_VALUE(send_imm, IBV_WR_SEND_WITH_IMM)
WITH_VALUE(send_inv, IBV_WR_SEND_WITH_INV)
WITH_VALUE(local_inv, IBV_WR_LOCAL_INV)

static void send_plain(struct ibv_qp_ex *ex)
{
	begin(of(ex), IBV_WR_SEND);
}

static void rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
	begin_remote(of(ex), IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);
	if (of(ex)->builder.slot)
		of(ex)->builder.slot->imm_or_stag = imm;
}

static void bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct urdma_abi_sqe *slot = begin(of(ex), IBV_WR_BIND_MW);
	int status = urdma_window_check(mw, info);

	if (status)
		fail(of(ex), status);
	else if (slot)
		urdma_window_write(slot, mw, rkey, info);
}

static void atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
	begin_remote(of(ex), IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr);
	if (of(ex)->builder.slot) {
		of(ex)->builder.slot->compare_add = compare;
		of(ex)->builder.slot->swap = swap;
	}
}

static void atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	begin_remote(of(ex), IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr);
	if (of(ex)->builder.slot)
		of(ex)->builder.slot->compare_add = add;
}

static void set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct urdma_qp *qp = of(ex);

	if (!qp->builder.slot)
		return;
	if (urdma_may_send_to(qp, ah))
		urdma_sqe_address(qp->builder.slot, ah, remote_qpn, remote_qkey);
	else
		fail(qp, EINVAL);
}

static void set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	if (of(ex)->builder.slot)
		of(ex)->builder.slot->remote_srqn = remote_srqn;
}

static void set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
	struct urdma_qp *qp = of(ex);
	struct urdma_abi_sqe *slot = qp->builder.slot;
	struct urdma_abi_sge *sge;
	uint64_t total = 0;

	if (!slot)
		return;
	if (n > qp->sq.max_sge || (urdma_operation(slot->opcode)->writes_local && n > qp->max_sge_read)) {
		fail(qp, EINVAL);
		return;
	}
	sge = (struct urdma_abi_sge *)(slot + 1);
	for (size_t i = 0; i < n; i++) {
		sge[i] = (struct urdma_abi_sge){ .addr = list[i].addr, .length = list[i].length, .lkey = list[i].lkey };
		total += list[i].length;
	}
	slot->num_sge = (uint32_t)n;
	if (total > qp->max_message)
		fail(qp, EINVAL);
}

static void set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	set_sge_list(ex, 1, &sge);
}

static void set_inline_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
	struct urdma_qp *qp = of(ex);
	struct urdma_abi_sqe *slot = qp->builder.slot;
	uint8_t *to;

	if (!slot)
		return;
	to = (uint8_t *)(slot + 1);
	slot->flags |= IBV_SEND_INLINE;
	if (!urdma_operation(slot->opcode)->inlinable) {
		fail(qp, EINVAL);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (list[i].length > qp->max_inline - slot->inline_length) {
			fail(qp, EINVAL);
			return;
		}
		memcpy(to + slot->inline_length, list[i].addr, list[i].length);
		slot->inline_length += (uint32_t)list[i].length;
	}
	if (slot->inline_length > qp->max_message)
		fail(qp, EINVAL);
}

static void set_inline(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buffer = { .addr = addr, .length = length };

	set_inline_list(ex, 1, &buffer);
}

static void drop_all(struct urdma_qp *qp)
{
	qp->sq.prod = qp->builder.first;
	qp->builder.slot = NULL;
	urdma_lock_drop(&qp->sq.lock, qp->builder.taken);
}

static void give_up(struct ibv_qp_ex *ex)
{
	drop_all(of(ex));
}

static int complete(struct ibv_qp_ex *ex)
{
	struct urdma_qp *qp = of(ex);
	uint32_t first = qp->builder.first, prod = qp->sq.prod;
	int error = urdma_client_state(qp->client) == URDMA_CLIENT_FORKED ? EIO : qp->builder.error;
	bool news = prod != first;

	if (error) {
		drop_all(qp);
		if (urdma_warn_wanted)
			urdma_warn_sends(qp, first, first, error);
		return error;
	}
	if (news)
		urdma_queue_publish(&qp->sq);
	qp->builder.slot = NULL;
	urdma_lock_drop(&qp->sq.lock, qp->builder.taken);
	if (news)
		urdma_announce_send(qp);
	if (urdma_warn_wanted)
		urdma_warn_sends(qp, first, prod, 0);
	return 0;
}

void urdma_build_fill(struct urdma_qp *qp, uint64_t ops)
{
	struct ibv_qp_ex *ex = &qp->ex;

	ex->wr_start = start;
	ex->wr_complete = complete;
	ex->wr_abort = give_up;
	ex->wr_set_sge = set_sge;
	ex->wr_set_sge_list = set_sge_list;
	ex->wr_set_inline_data = set_inline;
	ex->wr_set_inline_data_list = set_inline_list;
	if (qp->datagram)
		ex->wr_set_ud_addr = set_ud_addr;
	if (ex->qp_base.qp_type == IBV_QPT_XRC_SEND)
		ex->wr_set_xrc_srqn = set_xrc_srqn;
#define OFFER(operation, member, function)         \
	if (ops & IBV_QP_EX_WITH_##operation)      \
		ex->wr_##member = function
	OFFER(RDMA_WRITE, rdma_write, rdma_write);
	OFFER(RDMA_WRITE_WITH_IMM, rdma_write_imm, rdma_write_imm);
	OFFER(SEND, send, send_plain);
	OFFER(SEND_WITH_IMM, send_imm, send_imm);
	OFFER(SEND_WITH_INV, send_inv, send_inv);
	OFFER(LOCAL_INV, local_inv, local_inv);
	OFFER(BIND_MW, bind_mw, bind_mw);
	OFFER(RDMA_READ, rdma_read, rdma_read);
	OFFER(ATOMIC_CMP_AND_SWP, atomic_cmp_swp, atomic_cmp_swp);
	OFFER(ATOMIC_FETCH_AND_ADD, atomic_fetch_add, atomic_fetch_add);
}
