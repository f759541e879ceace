/*
 * iomap.c - riomap, riounmap and riowrite: memory of one end that the other writes to by offset. Each end
 * announces its mappings by writing them into a table at the other end, whose size is the other's
 * RDMA_IOMAPSIZE.
 */
#include <byteswap.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rsockets.h"

#define UNMAP_NS 10000000000ll /* ns: how long riounmap waits until the peer's host has the cleared entry */

/* Returns an unused entry of the peer's table, or -1. */
static int free_entry(const struct rs *rs)
{
	int entries = (int)rs->io.peer.bytes;
	const struct rs_mapping *m;

	for (int i = 0; i < entries; i++) {
		for (m = rs->io.mappings; m && m->index != i; m = m->next)
			;
		if (!m)
			return i;
	}
	return -1;
}

static bool has_slot(struct rs *rs)
{
	return rs->broken || rs->state != RS_CONNECTED || (rs_credits(rs) && rs_local_room(rs));
}

/* Writes a mapping's entry of the peer's table; a mapping of no bytes clears it. Returns 0 or an errno value. */
static int tell(struct rs *rs, const struct rs_mapping *m, uint64_t offset)
{
	struct rs_iomap entry = { 0 };
	int error = rs_wait(rs, has_slot, -1);

	if (error)
		return error;
	if (rs->broken || rs->closed)
		return ECONNRESET;
	if (m->length)
		entry = (struct rs_iomap){ rs->swapped ? bswap_64(offset) : offset,
					   rs_swap((struct rs_remote){ (uintptr_t)m->buf, m->mr->rkey, (uint32_t)m->length },
						   rs->swapped) };
	rs->tx.sent++;
	return rs_post_entry(rs, &entry, sizeof(entry), &rs->io.peer, (uint32_t)m->index, RS_IOMAP, (uint32_t)m->index);
}

static void remove_mapping(struct rs *rs, struct rs_mapping *m)
{
	struct rs_mapping **link = &rs->io.mappings;

	while (*link != m)
		link = &(*link)->next;
	*link = m->next;
	ibv_dereg_mr(m->mr);
	free(m);
}

static int add_mapping(struct rs *rs, void *buf, size_t len, int prot, uint64_t offset)
{
	int access = IBV_ACCESS_LOCAL_WRITE | (prot & PROT_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0);
	int index = prot & PROT_WRITE ? free_entry(rs) : -1, error = 0;
	struct rs_mapping *m;

	if ((prot & PROT_WRITE) && index < 0)
		return ENOMEM;
	m = malloc(sizeof(*m));
	if (!m)
		return ENOMEM;
	*m = (struct rs_mapping){ .next = rs->io.mappings, .buf = buf, .length = len, .index = index };
	m->mr = ibv_reg_mr(rs->id->pd, buf, len, access);
	if (!m->mr) {
		error = errno;
		free(m);
		return error;
	}
	rs->io.mappings = m;
	if (index >= 0)
		error = tell(rs, m, offset);
	if (error)
		remove_mapping(rs, m);
	return error;
}

static off_t map(int socket, void *buf, size_t len, int prot, off_t offset)
{
	struct rs *rs = rs_take(socket);
	int error = EINVAL;

	if (!rs)
		return -1;
	if (offset == -1)
		offset = (off_t)(uintptr_t)buf;
	if (rs->state != RS_CONNECTED)
		error = ENOTCONN;
	else if (!(prot & ~(PROT_WRITE | PROT_NONE)) && len && len <= UINT32_MAX && offset >= 0)
		error = add_mapping(rs, buf, len, prot, (uint64_t)offset);
	rs_drop(rs);
	return error ? rs_fail(error) : offset;
}

/* Cancellation is disabled meanwhile: it would leave a mapping half announced. */
RS_EXPORT off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	int cancel;

	(void)flags;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	offset = map(socket, buf, len, prot, offset);
	pthread_setcancelstate(cancel, NULL);
	return offset;
}

/* When the peer's host has the cleared entry, the memory is no longer used by it. A write that the peer
 * posted before and that is still under way is refused, which ends the connection; it is not placed. Only
 * the peer's program knows when its last write is complete. */
static void withdraw(struct rs *rs, struct rs_mapping *m)
{
	int64_t until = rs_now_ns() + UNMAP_NS;
	int error;

	m->length = 0; /* found no more, but keeps its entry, which another riomap must not take before it is cleared */
	do
		error = rs->broken || m->index < 0 ? 0 : tell(rs, m, 0);
	while (error == EINTR);
	do
		error = rs_wait(rs, rs_all_sent, until);
	while (error == EINTR);
	remove_mapping(rs, m);
}

static int unmap(int socket, void *buf, size_t len)
{
	struct rs *rs = rs_take(socket);
	struct rs_mapping *m;

	if (!rs)
		return -1;
	for (m = rs->io.mappings; m && (!len || m->buf != buf || m->length != len); m = m->next)
		;
	if (m)
		withdraw(rs, m);
	rs_drop(rs);
	return m ? 0 : rs_fail(EINVAL);
}

RS_EXPORT int riounmap(int socket, void *buf, size_t len)
{
	int result, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	result = unmap(socket, buf, len);
	pthread_setcancelstate(cancel, NULL);
	return result;
}

/* Finds the peer's mapping that contains an offset: its address, and the bytes left in it. */
static bool find(const struct rs *rs, uint64_t offset, struct rs_remote *to)
{
	struct rs_iomap entry;

	for (uint32_t i = 0; i < rs->io.entries; i++) {
		memcpy(&entry, &rs->io.table->iomaps[i], sizeof(entry));
		if (offset < entry.offset || offset - entry.offset >= entry.buffer.bytes)
			continue;
		offset -= entry.offset;
		*to = (struct rs_remote){ entry.buffer.addr + offset, entry.buffer.rkey, entry.buffer.bytes - (uint32_t)offset };
		return true;
	}
	return false;
}

static bool has_room(struct rs *rs)
{
	return rs->broken || rs->tx.ended || rs->state != RS_CONNECTED || rs_local_room(rs);
}

static int write_piece(struct rs *rs, const uint8_t *from, const struct rs_remote *to, uint32_t n)
{
	struct ibv_sge sge = { .length = n, .lkey = rs->tx.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = n, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = n <= rs->options.inline_bytes ? IBV_SEND_INLINE : 0,
		.wr.rdma = { to->addr, to->rkey },
	};

	sge.addr = (uintptr_t)rs_stage(rs, from, n);
	return rs_post(rs, &wr);
}

/* Writes at most one piece. Returns the number of bytes; -1 with errno set on failure. */
static ssize_t write_some(struct rs *rs, const uint8_t *from, size_t left, uint64_t offset, int flags)
{
	struct rs_remote to;
	uint32_t n;
	int error = rs_wait_unless(rs, has_room, flags);

	if (error)
		return rs_fail(error);
	if (rs->state != RS_CONNECTED || rs->closed)
		return rs_fail(ENOTCONN);
	if (rs->broken || rs->tx.ended)
		return rs_fail(rs->tx.ended ? EPIPE : ECONNRESET);
	if (!find(rs, offset, &to))
		return rs_fail(EINVAL);
	n = rs_local_room(rs);
	n = n < to.bytes ? n : to.bytes;
	n = left < n ? (uint32_t)left : n;
	return write_piece(rs, from, &to, n) ? rs_fail(ECONNRESET) : (ssize_t)n;
}

RS_EXPORT size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct rs *rs = rs_take(socket);
	size_t done = 0;
	ssize_t n = 0;

	if (!rs)
		return (size_t)-1;
	while (done < count && n >= 0) {
		n = write_some(rs, (const uint8_t *)buf + done, count - done, (uint64_t)offset + done, flags);
		if (n > 0)
			done += (size_t)n;
	}
	rs_drop(rs);
	return done || n >= 0 ? done : (size_t)-1;
}
