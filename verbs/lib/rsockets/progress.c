/*
 * progress.c - posts messages and processes completions: the peer's messages, freed space in our own
 * queue, and the end of the connection.
 */
#include <arpa/inet.h>

#include "rsockets.h"

#define TYPE_SHIFT 29
#define VALUE_MASK ((1u << TYPE_SHIFT) - 1)
#define ROOM_BITS 17
#define ROOM_MASK ((1u << ROOM_BITS) - 1)
#define ROOM_UNIT 64u
#define BATCH 32

void rs_break(struct rs *rs, int error)
{
	if (rs->broken)
		return;
	rs->broken = true;
	if (!rs->rx.ended && !rs->error)
		rs->error = error;
	rs_signal(rs);
}

int rs_post(struct rs *rs, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int error = ibv_post_send(rs->id->qp, wr, &bad);

	if (error)
		rs_break(rs, ECONNRESET);
	else
		rs->tx.outstanding++;
	return error;
}

int rs_post_receive(struct rs *rs)
{
	struct ibv_recv_wr wr = { .wr_id = 0 }, *bad;

	return ibv_post_recv(rs->id->qp, &wr, &bad);
}

/* Posts a message that consists of immediate data only. */
void rs_post_message(struct rs *rs, unsigned type, uint32_t value)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = htonl(type << TYPE_SHIFT | value),
		.wr.rdma = { rs->tx.peer.addr, rs->tx.peer.rkey },
	};

	rs_post(rs, &wr);
}

static bool control_slot(const struct rs *rs)
{
	return rs->tx.outstanding + 1 < rs->tx.slots + RS_CONTROL_SLOTS; /* one slot is reserved for END */
}

void rs_grant(struct rs *rs)
{
	struct rs_rx *rx = &rs->rx;
	uint64_t units = (rx->read - rx->given) / ROOM_UNIT;

	if (units > ROOM_MASK)
		units = ROOM_MASK;
	if (rs->broken || !control_slot(rs) ||
	    (rx->read - rx->given < rx->bytes / 2 && rx->renewed < (rx->receives + 1) / 2))
		return;
	rx->given += units * ROOM_UNIT;
	rs_post_message(rs, RS_GRANT, rx->renewed << ROOM_BITS | (uint32_t)units);
	rx->renewed = 0;
}

static void take_message(struct rs *rs, uint32_t message)
{
	uint32_t value = message & VALUE_MASK;

	switch (message >> TYPE_SHIFT) {
	case RS_DATA:
		if (value > rs->rx.bytes - (rs->rx.arrived - rs->rx.read))
			rs_break(rs, ECONNRESET); /* the peer sent more than was granted */
		else
			rs->rx.arrived += value;
		return;
	case RS_GRANT:
		rs->tx.credits += value >> ROOM_BITS;
		rs->tx.granted += (uint64_t)(value & ROOM_MASK) * ROOM_UNIT;
		return;
	case RS_END:
		rs->rx.ended = true;
		return;
	default: /* IOMAP: the peer has already written the table */
		return;
	}
}

static void received(struct rs *rs, const struct ibv_wc *wc)
{
	if (!(wc->wc_flags & IBV_WC_WITH_IMM)) {
		rs_break(rs, ECONNRESET);
		return;
	}
	take_message(rs, ntohl(wc->imm_data));
	rs->rx.renewed++;
	if (!rs->broken && rs_post_receive(rs))
		rs_break(rs, ECONNRESET);
}

static void completed(struct rs *rs, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		rs_break(rs, ECONNRESET);
	} else if (wc->opcode & IBV_WC_RECV) {
		received(rs, wc);
	} else {
		rs->tx.outstanding--;
		rs->tx.completed += wc->wr_id; /* wr_id: bytes of our ring */
	}
}

bool rs_progress(struct rs *rs)
{
	struct ibv_wc wc[BATCH];
	bool news = false;
	int n;

	if (rs->kind)
		return rs->kind->progress(rs);
	if (!rs->id || !rs->id->recv_cq)
		return false;
	while ((n = ibv_poll_cq(rs->id->recv_cq, BATCH, wc)) > 0) {
		news = true;
		for (int i = 0; i < n && !rs->broken; i++)
			completed(rs, &wc[i]);
		if (rs->broken)
			break;
	}
	if (n < 0)
		rs_break(rs, ECONNRESET);
	if (rs->state != RS_CONNECTED)
		return news;
	rs_grant(rs);
	if (news)
		rs_signal(rs);
	return news;
}

void rs_arm_queue(struct ibv_cq *cq, struct ibv_comp_channel *channel)
{
	struct ibv_cq *told;
	void *context;
	int before = errno;

	while (ibv_get_cq_event(channel, &told, &context) == 0)
		ibv_ack_cq_events(told, 1);
	errno = before;
	ibv_req_notify_cq(cq, 0);
}

void rs_arm(struct rs *rs)
{
	if (rs->kind)
		rs->kind->arm(rs);
	else if (rs->id && rs->id->recv_cq)
		rs_arm_queue(rs->id->recv_cq, rs->id->recv_cq_channel);
}

uint32_t rs_local_room(const struct rs *rs)
{
	const struct rs_tx *tx = &rs->tx;
	uint32_t at = (uint32_t)(tx->posted % tx->bytes), free = tx->bytes - (uint32_t)(tx->posted - tx->completed);

	if (tx->outstanding >= tx->slots)
		return 0;
	return free < tx->bytes - at ? free : tx->bytes - at;
}

uint32_t rs_send_room(const struct rs *rs)
{
	const struct rs_tx *tx = &rs->tx;
	uint64_t there = tx->granted - tx->written;
	uint32_t at = (uint32_t)(tx->written % tx->peer.bytes), ours = rs_local_room(rs);

	if (!tx->credits)
		return 0;
	if (there > tx->peer.bytes - at)
		there = tx->peer.bytes - at;
	return there < ours ? (uint32_t)there : ours;
}
