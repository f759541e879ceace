/*
 * progress.c - posts messages and processes completions: the peer's messages, freed space in our own
 * queue, and the end of the connection.
 */
#include <arpa/inet.h>
#include <byteswap.h>

#include "rsockets.h"

#define TYPE_SHIFT 29
#define VALUE_MASK ((1u << TYPE_SHIFT) - 1)
/* On iWARP, credits left unused, because the peer has no further receives for our CREDITS and CONTROL: while it
 * processes none we may send it grants of three halves, CREDITS for twice half of its messages, and SHUTDOWN. */
#define SPARE_CREDITS RS_SPARE_RECEIVES
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

int rs_post_receive(struct rs *rs, uint64_t i)
{
	struct ibv_sge sge = { .length = sizeof(*rs->rx.sends), .lkey = rs->tx.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = rs->iwarp }, *bad;

	if (rs->iwarp)
		sge.addr = (uintptr_t)&rs->rx.sends[i];
	return ibv_post_recv(rs->id->qp, &wr, &bad);
}

int rs_post_message(struct rs *rs, struct ibv_send_wr *write, unsigned type, uint32_t value)
{
	uint32_t message = type << TYPE_SHIFT | value;
	struct ibv_sge sge = { .addr = (uintptr_t)&message, .length = sizeof(message) };
	struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE };
	int error = 0;

	write->opcode = rs->iwarp ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
	write->imm_data = htonl(message);
	if (!rs->iwarp || write->num_sge)
		error = rs_post(rs, write);
	return rs->iwarp && !error ? rs_post(rs, &send) : error;
}

int rs_post_control(struct rs *rs, uint32_t value)
{
	return rs_post_message(rs, &(struct ibv_send_wr){ 0 }, RS_CONTROL, value);
}

int rs_post_entry(struct rs *rs, void *entry, uint32_t bytes, const struct rs_remote *table, uint32_t index,
	unsigned type, uint32_t value)
{
	struct ibv_sge sge = { .addr = (uintptr_t)entry, .length = bytes };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_INLINE,
				  .wr.rdma = { table->addr + (uint64_t)index * bytes, table->rkey } };

	return rs_post_message(rs, &wr, type, value);
}

struct rs_remote rs_swap(struct rs_remote r, bool swap)
{
	return swap ? (struct rs_remote){ bswap_64(r.addr), bswap_32(r.rkey), bswap_32(r.bytes) } : r;
}

static uint32_t slots_of_message(const struct rs *rs)
{
	return rs->iwarp ? 2 : 1;
}

/* SHUTDOWN and DISCONNECT have two slots of their own. */
static bool control_slot(const struct rs *rs)
{
	return rs->tx.outstanding + slots_of_message(rs) + 2 <= rs->tx.slots + RS_CONTROL_SLOTS;
}

void rs_post_keepalive(struct rs *rs)
{
	struct ibv_send_wr write = { .opcode = IBV_WR_RDMA_WRITE };

	if (!rs->broken && !rs->silent && !rs->disconnecting && control_slot(rs))
		rs_post(rs, &write);
}

void rs_grant(struct rs *rs)
{
	struct rs_rx *rx = &rs->rx;
	uint32_t half = rx->bytes / 2;
	bool room = rx->granted - rx->read <= half;
	struct rs_remote grant = { (uintptr_t)rx->ring + rx->granted % rx->bytes, rx->mr->rkey, half };

	if (rs->broken || rs->silent || rx->ended || !control_slot(rs) || (!room && rx->uncredited < (rx->receives + 1) / 2))
		return;
	grant = rs_swap(grant, rs->swapped);
	rx->uncredited = 0;
	if (!room) {
		rs_post_message(rs, &(struct ibv_send_wr){ 0 }, RS_CREDITS, (uint16_t)(rx->messages + rx->receives));
		return;
	}
	rs_post_entry(rs, &grant, sizeof(grant), &rx->table, rx->next_grant, RS_CREDITS,
		      (uint16_t)(rx->messages + rx->receives));
	rx->granted += half;
	rx->next_grant = (rx->next_grant + 1) % rx->table.bytes;
}

/* Takes the next grant from the table, if there is one and the previous is used up. The peer writes an entry
 * again only after that. An entry's last part is its size, so an entry that has one is complete. */
static void take_grant(struct rs *rs)
{
	struct rs_tx *tx = &rs->tx;
	struct rs_remote *entry = &rs->io.table->grants[tx->next_grant];
	uint32_t bytes = __atomic_load_n(&entry->bytes, __ATOMIC_ACQUIRE);

	if (tx->target.bytes || !bytes)
		return;
	tx->target = (struct rs_remote){ entry->addr, entry->rkey, bytes };
	__atomic_store_n(&entry->bytes, 0, __ATOMIC_RELEASE);
	tx->next_grant = (tx->next_grant + 1) % RS_GRANTS;
}

static void take_control(struct rs *rs, uint32_t value)
{
	if (value == RS_SHUTDOWN || value == RS_DISCONNECT)
		rs->rx.ended = true;
	if (value == RS_DISCONNECT)
		rs_break(rs, 0);
}

static void take_message(struct rs *rs, uint32_t message)
{
	uint32_t value = message & VALUE_MASK, type = message >> TYPE_SHIFT;

	if (type == RS_DATA || type == RS_IOMAP) {
		rs->rx.messages++;
		rs->rx.uncredited++;
	}
	switch (type) {
	case RS_DATA:
		if (value > rs->rx.granted - rs->rx.arrived)
			rs_break(rs, ECONNRESET); /* the peer sent more than was granted */
		else
			rs->rx.arrived += value;
		return;
	case RS_CREDITS:
		rs->tx.permitted = (uint16_t)value;
		return;
	case RS_IOMAP: /* the peer has already written the table */
		return;
	case RS_CONTROL:
		take_control(rs, value);
		return;
	default:
		rs_break(rs, ECONNRESET);
	}
}

static void received(struct rs *rs, const struct ibv_wc *wc)
{
	rs->silent = false;
	if (wc->wr_id >= rs_receives(rs))
		rs_break(rs, ECONNRESET); /* urdmad has completed a receive that was not posted; a send: see completed */
	else if (wc->wc_flags & IBV_WC_WITH_IMM)
		take_message(rs, ntohl(wc->imm_data));
	else if (rs->iwarp && wc->byte_len == sizeof(*rs->rx.sends))
		take_message(rs, rs->swapped ? bswap_32(rs->rx.sends[wc->wr_id]) : rs->rx.sends[wc->wr_id]);
	else
		rs_break(rs, ECONNRESET);
	if (!rs->broken && rs_post_receive(rs, wc->wr_id))
		rs_break(rs, ECONNRESET);
}

static void completed(struct rs *rs, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		rs_break(rs, ECONNRESET);
	} else if (wc->opcode & IBV_WC_RECV) {
		received(rs, wc);
	} else if (!rs->tx.outstanding || wc->wr_id > rs->tx.posted - rs->tx.completed) {
		rs_break(rs, ECONNRESET);
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
	if (!rs->id || !rs->id->recv_cq || !rs->rx.table.bytes)
		return false; /* messages are read after the peer's private data, which says what they mean */
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
	take_grant(rs);
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

	if (tx->outstanding + slots_of_message(rs) > tx->slots)
		return 0;
	return free < tx->bytes - at ? free : tx->bytes - at;
}

uint32_t rs_credits(const struct rs *rs)
{
	uint16_t credits = (uint16_t)(rs->tx.permitted - rs->tx.sent), spare = rs->iwarp ? SPARE_CREDITS : 0;

	return credits > spare && !rs->silent ? credits - spare : 0;
}

uint32_t rs_send_room(const struct rs *rs)
{
	uint32_t ours = rs_local_room(rs);

	if (!rs_credits(rs))
		return 0;
	return rs->tx.target.bytes < ours ? rs->tx.target.bytes : ours;
}
