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

static void take_datagram(struct rs *rs, struct rs_pair *p, struct ibv_wc *wc, uint8_t *buffer)
{
	union rs_name from;
	struct ibv_ah_attr path;
	struct rs_header h;
	struct rs_peer *peer;

	if (wc->byte_len < RS_GRH + sizeof(h) || ibv_init_ah_from_wc(p->verbs, p->port, wc, (struct ibv_grh *)buffer, &path))
		return;
	memcpy(&h, buffer + RS_GRH, sizeof(h));
	if (ntohs(h.magic) != RS_MAGIC || !h.port || ntohs(h.largest) < RS_SMALLEST)
		return;
	from = path.is_global ? rs_name_of_gid(&path.grh.dgid, h.port, &p->own) : rs_name_of_lid(path.dlid, h.port, &p->own);
	if (!wanted(rs->datagrams, &from, wc->src_qp, &path))
		return;
	peer = rs_peer_of(rs, &from);
	if (peer)
		rs_peer_heard(peer, p, wc->src_qp, ntohs(h.largest), &path);
	if (!rs->no_receive)
		rs_message_part(rs, &from, &h, buffer + RS_GRH + sizeof(h), wc->byte_len - RS_GRH - (uint32_t)sizeof(h));
}

static void completed(struct rs *rs, struct rs_pair *p, struct ibv_wc *wc)
{
	uint32_t i = (uint32_t)wc->wr_id;

	if (wc->status != IBV_WC_SUCCESS) {
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
