/*
 * peers.c - peers of datagram sockets: finds the queue pair for an address, through rdma_cm or from
 * messages that arrive. The service thread (service.c) reads the responses, and the requests of peers.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "datagram.h"

#define RESOLVE_MS 2000
/* ns: after that time without a message from the peer its queue pair is requested again */
#define SURE_NS 10000000000ll
#define MOST_PEERS 4096u
/* Peers whose UDP messages have addresses resolved at a time: a stranger can claim any address. */
#define MOST_STRANGERS 64u
/* UDP messages that are processed at a time */
#define BATCH 32

static void free_peer(struct rs_peer *peer)
{
	rs_messages_drop(&peer->waiting);
	if (peer->id)
		rdma_destroy_id(peer->id);
	if (peer->ah)
		ibv_destroy_ah(peer->ah);
	free(peer);
}

/* Removes peers for which no message waits; when needed they are requested again. */
static void forget_idle(struct rs_datagrams *d)
{
	for (uint32_t i = 0; i < RS_BUCKETS; i++)
		for (struct rs_peer **link = &d->peers[i], *p; (p = *link);) {
			if (p == d->connected || p->id || p->waiting.first) {
				link = &p->next;
				continue;
			}
			*link = p->next;
			free_peer(p);
			d->peer_count--;
		}
}

static struct rs_peer **bucket_of(struct rs *rs, const union rs_name *name)
{
	return &rs->datagrams->peers[rs_name_hash(name) % RS_BUCKETS];
}

struct rs_peer *rs_peer_find(struct rs *rs, const union rs_name *name)
{
	for (struct rs_peer *p = *bucket_of(rs, name); p; p = p->next)
		if (rs_name_equal(&p->name, name))
			return p;
	return NULL;
}

struct rs_peer *rs_peer_of(struct rs *rs, const union rs_name *name)
{
	struct rs_datagrams *d = rs->datagrams;
	struct rs_peer *p = rs_peer_find(rs, name), **bucket = bucket_of(rs, name);

	if (p)
		return p;
	if (d->peer_count >= MOST_PEERS)
		forget_idle(d);
	if (d->peer_count >= MOST_PEERS) {
		errno = ENOBUFS;
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->name = *name;
	p->next = *bucket;
	*bucket = p;
	d->peer_count++;
	return p;
}

void rs_peers_free(struct rs *rs)
{
	struct rs_peer *p;

	for (uint32_t i = 0; i < RS_BUCKETS; i++)
		while ((p = rs->datagrams->peers[i])) {
			rs->datagrams->peers[i] = p->next;
			free_peer(p);
		}
}

static void set_path(struct rs_peer *peer, struct rs_pair *pair, uint32_t qpn, struct ibv_ah_attr *path)
{
	struct ibv_ah *ah = ibv_create_ah(pair->pd, path);

	if (!ah)
		return;
	if (peer->ah)
		ibv_destroy_ah(peer->ah);
	peer->ah = ah;
	peer->path = *path;
	peer->pair = pair;
	peer->qpn = qpn;
	peer->sure_ns = rs_now_ns();
}

/* A message from another queue pair than rdma_cm has named is trusted only after rdma_cm names that queue
 * pair. */
void rs_peer_heard(struct rs_peer *peer, struct rs_pair *pair, uint32_t qpn, const union rs_name *local,
	struct ibv_ah_attr *path)
{
	if (peer->local.any.sa_family == AF_UNSPEC)
		peer->local = *local;
	if (!peer->pair)
		set_path(peer, pair, qpn, path);
	else if (peer->qpn == qpn)
		peer->sure_ns = rs_now_ns();
	else
		peer->sure_ns = 0;
}

/* ---- asking ---------------------------------------------------------------------- */

/* Returns the address to which the socket is bound, unless it is the wildcard address. */
static struct sockaddr *source_of(struct rs *rs, union rs_name *from)
{
	*from = rs_name_of(rdma_get_local_addr(rs->id));
	if (from->any.sa_family == AF_UNSPEC || rs_name_is_any(from))
		return NULL;
	from->four.sin_port = 0;
	return &from->any;
}

static int resolve(struct rs *rs, struct rs_peer *peer)
{
	union rs_name from;

	if (rdma_create_id(rs->channel, &peer->id, peer, RDMA_PS_UDP))
		return -1;
	if (!rdma_resolve_addr(peer->id, source_of(rs, &from), &peer->name.any, RESOLVE_MS)) {
		rs->datagrams->resolving++;
		return 0;
	}
	rdma_destroy_id(peer->id); /* does not change errno */
	peer->id = NULL;
	return -1;
}

int rs_peer_ask(struct rs *rs, struct rs_peer *peer)
{
	if (peer->id || ((peer->pair || peer->announced) && rs_now_ns() - peer->sure_ns < SURE_NS))
		return 0;
	if (!peer->announced)
		return resolve(rs, peer);
	peer->pair = NULL; /* the next message is a UDP message */
	peer->sure_ns = rs_now_ns();
	return 0;
}

static void asked_in_vain(struct rs *rs, struct rs_peer *peer, int error)
{
	rs_messages_drop(&peer->waiting);
	peer->pair = peer->announced = NULL;
	peer->told = 0;
	peer->owed = false;
	if (peer == rs->datagrams->connected)
		rs->error = error;
	rs_signal(rs);
}

static void send_waiting(struct rs *rs, struct rs_peer *peer)
{
	struct rs_message *m;

	while ((m = rs_message_take(&peer->waiting))) {
		if (!peer->pair)
			rs_udp_send(rs, peer, m);
		else if (rs_pair_has_room(peer->pair))
			rs_pair_send(rs, peer, m->data, m->length); /* if this fails the message is lost, as datagrams may be */
		free(m);
		rs_progress(rs);
	}
}

/* Sends what waited, now that the peer's queue pair is known; error if it could not be used. */
static void answered(struct rs *rs, struct rs_peer *peer, struct rs_pair *pair)
{
	if (!pair || peer->pair != pair) {
		asked_in_vain(rs, peer, errno);
		return;
	}
	peer->local = rs_name_of(rdma_get_local_addr(peer->id));
	if (peer->owed)
		rs_udp_send(rs, peer, NULL);
	peer->told = 0;
	peer->owed = false;
	send_waiting(rs, peer);
	rs_signal(rs);
}

/* rdma_cm has named the queue pair. */
static void named(struct rs *rs, struct rs_peer *peer, struct rdma_ud_param *to)
{
	struct rs_pair *pair = rs_pair_of(rs, peer->id);

	peer->announced = NULL;
	if (pair)
		set_path(peer, pair, to->qp_num, &to->ah_attr);
	answered(rs, peer, pair);
}

/* A UDP message has named the queue pair; the path to its host is resolved. */
static void found(struct rs *rs, struct rs_peer *peer)
{
	struct rs_pair *pair = rs_pair_of(rs, peer->id);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask;

	peer->pair = NULL;
	if (pair && rdma_init_qp_attr(peer->id, &attr, &mask) == 0) {
		peer->announced = pair;
		set_path(peer, pair, peer->told, &attr.ah_attr);
	}
	answered(rs, peer, pair);
}

/* rdma_cm finds nobody at the peer's host: a socket of rdma-core may be there. Returns whether it can be asked. */
static bool ask_by_udp(struct rs *rs, struct rs_peer *peer)
{
	union rs_name local = rs_name_of(rdma_get_local_addr(peer->id));
	struct rs_pair *pair = rs_udp_has(rs, &local) ? rs_pair_of(rs, peer->id) : NULL;

	if (!pair)
		return false;
	peer->local = local;
	peer->pair = NULL;
	peer->announced = pair;
	peer->sure_ns = rs_now_ns();
	send_waiting(rs, peer);
	rs_signal(rs);
	return true;
}

/* Takes the number of its queue pair from a UDP message of the peer; owed: it awaits ours. */
static void peer_told(struct rs *rs, struct rs_peer *peer, uint32_t qpn, bool owed)
{
	if (peer->pair || (peer->announced && peer->ah && peer->qpn == qpn)) {
		if (!peer->pair)
			peer->pair = peer->announced;
		peer->sure_ns = peer->qpn == qpn ? rs_now_ns() : 0;
		if (owed)
			rs_udp_send(rs, peer, NULL);
		return;
	}
	if (!peer->id && rs->datagrams->resolving >= MOST_STRANGERS)
		return;
	peer->told = qpn;
	peer->owed = peer->owed || owed;
	if (!peer->id && resolve(rs, peer))
		asked_in_vain(rs, peer, errno);
}

/* A connected socket has only its peer. */
static void take_udp(struct rs *rs, const struct rs_udp_message *m)
{
	const struct rs_peer *c = rs->datagrams->connected;
	struct rs_peer *peer;

	if (c && !rs_name_equal(&c->name, &m->from))
		return;
	peer = m->is_data ? rs_peer_of(rs, &m->from) : rs_peer_find(rs, &m->from);
	if (peer)
		peer_told(rs, peer, m->qpn, m->is_data);
	if (m->is_data && !rs->no_receive) {
		rs_message_arrived(rs, &m->from, m->data, m->length);
		rs_signal(rs);
	}
}

/* Handles one event of a request. Returns false when the request is complete. */
static bool step(struct rs *rs, struct rs_peer *peer, struct rdma_cm_event *event)
{
	struct rdma_conn_param param = { 0 };

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (!rdma_resolve_route(peer->id, RESOLVE_MS))
			return true;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (peer->told) {
			found(rs, peer);
			return false;
		}
		if (!rdma_connect(peer->id, &param))
			return true;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		named(rs, peer, &event->param.ud);
		return false;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_UNREACHABLE:
		if (peer->told) {
			found(rs, peer);
			return false;
		}
		if (ask_by_udp(rs, peer))
			return false;
		errno = ECONNREFUSED;
		break;
	default:
		errno = rs_event_error(event);
	}
	asked_in_vain(rs, peer, errno);
	return false;
}

/* ---- answering ------------------------------------------------------------------- */

static void answer(struct rs *rs, struct rdma_cm_id *id)
{
	struct rs_pair *pair = rs_pair_of(rs, id);
	struct rdma_conn_param param = { 0 };

	if (pair) {
		param.qp_num = pair->qp->qp_num;
		rdma_accept(id, &param);
	} else {
		rdma_reject(id, NULL, 0);
	}
	rdma_destroy_id(id);
}

/* The id of an event can be destroyed only after the event is acknowledged. */
static void take_event(struct rs *rs, struct rdma_cm_event *event)
{
	struct rdma_cm_event copy = *event;
	struct rs_peer *peer = event->id->context;

	rdma_ack_cm_event(event);
	if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		answer(rs, copy.id);
	} else if (copy.id == rs->id) {
		if (copy.event == RDMA_CM_EVENT_DEVICE_REMOVAL)
			rs_break(rs, ENETDOWN);
	} else if (!step(rs, peer, &copy)) {
		rdma_destroy_id(copy.id);
		peer->id = NULL;
		rs->datagrams->resolving--;
	}
}

void rs_datagram_take_events(struct rs *rs)
{
	struct rdma_cm_event *event;
	struct rs_udp_message m;

	for (int i = 0, n = 0; i < BATCH && (n = rs_udp_receive(rs, &m)) >= 0; i++)
		if (n)
			take_udp(rs, &m);
	while (!rs->broken) {
		if (rdma_get_cm_event(rs->channel, &event) == 0)
			take_event(rs, event);
		else if (errno == ENODEV)
			rs_break(rs, ENETDOWN);
		else
			return;
	}
}
