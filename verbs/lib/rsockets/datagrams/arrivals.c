/* arrivals.c - handles completions of datagram sockets. */
#include <arpa/inet.h>
#include <string.h>

#include "datagram.h"

#define BATCH 32

/* Returns whether a datagram that arrived by this path came from the peer's host. */
static bool from_host_of(const struct rs_peer *peer, const struct ibv_ah_attr *path)
{
	const struct ibv_ah_attr *known = &peer->path;

	if (known->is_global && path->is_global)
		return !memcmp(&known->grh.dgid, &path->grh.dgid, sizeof(path->grh.dgid));
	return known->dlid && known->dlid == path->dlid;
}

/* A connected socket accepts only datagrams of its peer, which may be known under another address of its
 * host, such as 127.0.0.1. Queue pair numbers are unique only within a host, so the host is compared, too. */
static bool wanted(const struct rs_datagrams *d, union rs_name *from, uint32_t qpn, const struct ibv_ah_attr *path)
{
	const struct rs_peer *c = d->connected;

	if (!c)
		return true;
	if (c->pair && c->qpn == qpn && c->name.four.sin_port == from->four.sin_port && from_host_of(c, path))
		*from = c->name;
	return rs_name_equal(from, &c->name);
}

/* Reads the header; false if it is malformed. */
static bool read_header(const uint8_t *at, uint32_t n, const struct rs_pair *p, struct rs_header *h,
	union rs_name *from)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	*h = (struct rs_header){ 0 };
	memcpy(h, at, n < sizeof(*h) ? n : sizeof(*h));
	if (h->length > n || !h->port || !((h->version == 4 && h->length == 8) || (h->version == 6 && h->length == 24)))
		return false;
	memcpy(h->version == 4 ? gid.raw + 12 : gid.raw, h->address + (h->version == 4 ? 0 : 4), h->version == 4 ? 4 : 16);
	*from = rs_name_of_gid(&gid, h->port, &p->own);
	return true;
}

/* Returns to which GID of ours a datagram was sent: the 40 bytes before it are an IPv6 header, or end with an IPv4
 * header. */
static union ibv_gid destination(const uint8_t *grh)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	if (grh[0] >> 4 == 6)
		memcpy(gid.raw, grh + 24, 16);
	else
		memcpy(gid.raw + 12, grh + 36, 4);
	return gid;
}

/* Returns whether the datagram came from the host that its header names, and under which address it reached us.
 * Loopback addresses are not in packets: they name a sender at our own address. */
static bool came_from(const struct rs_pair *p, const struct ibv_ah_attr *path, const uint8_t *grh,
	const union rs_name *from, union rs_name *to)
{
	union ibv_gid own = destination(grh);
	union rs_name host;

	*to = p->own;
	if (!path->is_global)
		return true; /* InfiniBand: a LID says nothing about an address */
	*to = rs_name_of_gid(&own, 0, &p->own);
	host = rs_name_of_gid(&path->grh.dgid, from->four.sin_port, &p->own);
	return rs_name_equal(&host, from) || (rs_name_is_loopback(from) && !memcmp(&own, &path->grh.dgid, sizeof(own)));
}

static void take_datagram(struct rs *rs, struct rs_pair *p, struct ibv_wc *wc, uint8_t *buffer)
{
	union rs_name from, to;
	struct ibv_ah_attr path;
	struct rs_header h;
	struct rs_peer *peer;

	if (wc->byte_len < RS_GRH || ibv_init_ah_from_wc(p->verbs, p->port, wc, (struct ibv_grh *)buffer, &path))
		return;
	if (!read_header(buffer + RS_GRH, wc->byte_len - RS_GRH, p, &h, &from) || !came_from(p, &path, buffer, &from, &to) ||
	    !wanted(rs->datagrams, &from, wc->src_qp, &path))
		return;
	peer = rs_peer_of(rs, &from);
	if (peer)
		rs_peer_heard(peer, p, wc->src_qp, &to, &path);
	if (!rs->no_receive)
		rs_message_arrived(rs, &from, buffer + RS_GRH + h.length, wc->byte_len - RS_GRH - h.length);
}

/* Returns whether a completion may be that of a request that was posted. */
static bool posted(const struct rs_pair *p, const struct ibv_wc *wc)
{
	if (wc->wr_id & RS_RECEIVE)
		return (uint32_t)wc->wr_id < p->receives && wc->byte_len <= RS_GRH + p->largest;
	return wc->wr_id < p->sends && p->free_count < p->sends;
}

static void completed(struct rs *rs, struct rs_pair *p, struct ibv_wc *wc)
{
	uint32_t i = (uint32_t)wc->wr_id;

	if (wc->status != IBV_WC_SUCCESS || !posted(p, wc)) {
		rs_break(rs, ENETDOWN);
	} else if (wc->wr_id & RS_RECEIVE) {
		take_datagram(rs, p, wc, rs_pair_receive_at(p, i));
		if (rs_pair_post_receive(p, i))
			rs_break(rs, ENETDOWN);
	} else {
		p->free[p->free_count++] = i;
	}
}

bool rs_datagram_progress(struct rs *rs)
{
	struct ibv_wc wc[BATCH];
	bool news = false;
	int n;

	for (struct rs_pair *p = rs->datagrams->pairs; p; p = p->next) {
		while (!rs->broken && (n = ibv_poll_cq(p->cq, BATCH, wc)) != 0) {
			news = true;
			if (n < 0)
				rs_break(rs, ENETDOWN);
			for (int i = 0; i < n && !rs->broken; i++)
				completed(rs, p, &wc[i]);
		}
	}
	if (news)
		rs_signal(rs);
	return news;
}

void rs_datagram_arm(struct rs *rs)
{
	for (struct rs_pair *p = rs->datagrams->pairs; p; p = p->next)
		rs_arm_queue(p->cq, p->channel);
}
