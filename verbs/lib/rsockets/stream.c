/* stream.c - sends and receives bytes. */
#include <string.h>

#include "rsockets.h"

static bool is_decided(struct rs *rs)
{
	return !rs_is_connecting(rs);
}

int rs_await_connection(struct rs *rs, int flags)
{
	return rs_is_connecting(rs) ? rs_wait_unless(rs, is_decided, flags) : 0;
}

/* ---- sending ----------------------------------------------------------------- */

bool rs_can_send(struct rs *rs)
{
	return rs->broken || rs->tx.ended || rs->state != RS_CONNECTED || rs_send_room(rs);
}

/* Returns 0, or the errno value if the socket can't send. */
static int sendable(struct rs *rs)
{
	if (rs->state != RS_CONNECTED)
		return ENOTCONN;
	if (rs->closed)
		return EBADF;
	if (rs->tx.ended)
		return EPIPE;
	if (!rs->broken)
		return 0;
	rs->error = 0;
	return rs->rx.ended ? EPIPE : ECONNRESET;
}

void *rs_stage(struct rs *rs, const void *from, uint32_t n)
{
	uint8_t *at = rs->tx.ring + rs->tx.posted % rs->tx.bytes;

	if (from)
		memcpy(at, from, n);
	rs->tx.posted += n;
	return at;
}

static int post_data(struct rs *rs, struct rs_cursor *from, uint32_t n)
{
	struct rs_tx *tx = &rs->tx;
	uint8_t *at = rs_stage(rs, NULL, n);
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = n, .lkey = tx->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = n, .sg_list = &sge, .num_sge = 1,
		.send_flags = n <= rs->options.inline_bytes ? IBV_SEND_INLINE : 0,
		.wr.rdma = { tx->target.addr, tx->target.rkey },
	};

	rs_move(from, at, n, false);
	tx->target.addr += n;
	tx->target.bytes -= n;
	tx->sent++;
	return rs_post_message(rs, &wr, RS_DATA, n);
}

/* Less than half of the ring, so that the next piece can be copied while this one is sent, and less than the 29 bits
 * of a message. */
static uint32_t piece_of(const struct rs *rs, size_t left)
{
	uint32_t room = rs_send_room(rs), half = (rs->tx.bytes - 1) / 2;

	if (room > half)
		room = half;
	return left < room ? (uint32_t)left : room;
}

ssize_t rs_send(struct rs *rs, const struct iovec *iov, int count, int flags)
{
	struct rs_cursor from = { .iov = iov, .left = count };
	ssize_t total = rs_length(iov, count), done = 0;
	uint32_t n;
	int error = 0;

	if (total < 0)
		return -1;
	if (flags & MSG_OOB)
		return rs_fail(EOPNOTSUPP);
	error = rs_await_connection(rs, flags);
	if (error)
		return rs_fail(error);
	rs_progress(rs);
	while (!(error = sendable(rs)) && done < total) {
		n = piece_of(rs, (size_t)(total - done));
		if (n) {
			error = post_data(rs, &from, n);
			if (error)
				continue; /* the connection has ended: sendable returns the error */
			done += n;
			continue;
		}
		error = rs_wait_unless(rs, rs_can_send, flags);
		if (error)
			break;
	}
	return done || !error ? done : rs_fail(error);
}

/* ---- receiving ---------------------------------------------------------------- */

bool rs_can_receive(struct rs *rs)
{
	return rs->rx.arrived != rs->rx.read || rs->rx.ended || rs->no_receive || rs->broken || rs->state != RS_CONNECTED;
}

/* Copies up to n bytes of the data that has arrived. */
static size_t take(struct rs *rs, struct rs_cursor *to, size_t n, bool peek)
{
	struct rs_rx *rx = &rs->rx;
	uint64_t at = rx->read;
	size_t done = 0, piece;

	if (n > rx->arrived - at)
		n = (size_t)(rx->arrived - at);
	while (done < n) {
		piece = rx->bytes - at % rx->bytes;
		if (piece > n - done)
			piece = n - done;
		rs_move(to, rx->ring + at % rx->bytes, piece, true);
		at += piece;
		done += piece;
	}
	if (!peek) {
		rx->read = at;
		rs_grant(rs);
	}
	return done;
}

/* No more data will arrive: returns 0, or -1 with errno set the first time after an error. */
static ssize_t at_end(struct rs *rs)
{
	if (rs->closed)
		return rs_fail(EBADF);
	if (rs->state != RS_CONNECTED)
		return rs_fail(ENOTCONN);
	if (rs->rx.ended || rs->no_receive || rs->reset_reported)
		return 0;
	rs->reset_reported = true;
	rs->error = 0;
	return rs_fail(ECONNRESET);
}

ssize_t rs_receive(struct rs *rs, const struct iovec *iov, int count, int flags)
{
	struct rs_cursor to = { .iov = iov, .left = count };
	ssize_t total = rs_length(iov, count), done = 0;
	bool peek = flags & MSG_PEEK, all = (flags & MSG_WAITALL) && !peek;
	int error;

	if (total < 0)
		return -1;
	if (flags & MSG_OOB)
		return rs_fail(EINVAL);
	error = rs_await_connection(rs, flags);
	if (!error && rs->state != RS_CONNECTED)
		error = ENOTCONN;
	if (error)
		return rs_fail(error);
	rs_progress(rs);
	for (;;) {
		done += (ssize_t)take(rs, &to, (size_t)(total - done), peek);
		if (done == total || (done && (!all || rs_at_once(rs, flags))))
			return done;
		if (rs_can_receive(rs))
			return done ? done : at_end(rs);
		error = rs_wait_unless(rs, rs_can_receive, flags);
		if (error)
			return done ? done : rs_fail(error);
		if (rs->closed)
			return done ? done : rs_fail(EBADF);
	}
}
