/* datagram.c - calls on sockets of type SOCK_DGRAM. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include "datagram.h"

#define TRIES 16 /* to find a port number that is free in the kernel and in urdmad */
#define CLOSE_NS 2000000000ll /* ns: how long rclose waits for messages whose destination is not yet resolved */

static void datagram_free(struct rs *rs)
{
	struct rs_datagrams *d = rs->datagrams;
	struct rs_pair *pair;

	if (!d)
		return;
	rs_peers_free(rs);
	while ((pair = d->pairs)) {
		d->pairs = pair->next;
		rs_pair_free(pair);
	}
	rs_messages_drop(&d->arrived);
	rs_udp_close(rs);
	if (rs_is_open(&rs->file)) /* otherwise the program has closed all descriptors */
		rs_raw_close(d->poller);
	free(d);
	rs->datagrams = NULL;
}

static int datagram_descriptor(const struct rs *rs)
{
	return rs->datagrams->poller;
}

/* Replaces an id that can't listen on its bound address by an unbound one. If that fails, the next call
 * that needs an id tries again. */
static int renew(struct rs *rs)
{
	uint32_t reuse = rs->options.reuse, v6only = rs->options.v6only;
	struct rdma_cm_id *id;

	if (rdma_create_id(rs->channel, &id, rs, RDMA_PS_UDP))
		return -1;
	if (rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &reuse, sizeof(reuse)) ||
	    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &v6only, sizeof(v6only))) {
		rdma_destroy_id(id); /* does not change errno */
		return -1;
	}
	rdma_destroy_id(rs->id);
	rs->id = id;
	rs->datagrams->stale = false;
	return 0;
}

/* Takes the port number in the kernel, then the same one in urdmad. */
static int take_port(struct rs *rs, struct sockaddr *to)
{
	struct sockaddr_storage at = { 0 };
	int error;

	memcpy(&at, to, to->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	if ((rs->datagrams->stale && renew(rs)) || rs_udp_open(rs, &at))
		return -1;
	if (rdma_bind_addr(rs->id, (struct sockaddr *)&at) == 0 && rdma_listen(rs->id, 128) == 0)
		return 0;
	error = errno;
	rs_udp_close(rs);
	rs->datagrams->stale = true;
	renew(rs); /* frees the port number */
	return rs_fail(error);
}

static int datagram_bind(struct rs *rs, struct sockaddr *to)
{
	bool any = !((struct sockaddr_in *)to)->sin_port; /* IPv6's port number is at the same offset */
	int tries = any ? TRIES : 1;

	if (rs->datagrams->listens)
		return rs_fail(EINVAL);
	while (take_port(rs, to))
		if (errno != EADDRINUSE || --tries == 0)
			return -1;
	rs->datagrams->listens = true;
	return rs_serve(rs);
}

static int bind_to_any(struct rs *rs)
{
	struct sockaddr_storage any = { .ss_family = (sa_family_t)rs->domain };

	if (rs->served)
		return 0;
	return rs->datagrams->listens ? rs_serve(rs) : datagram_bind(rs, (struct sockaddr *)&any);
}

/* AF_UNSPEC dissolves the association, as in connect(2). */
static int datagram_connect(struct rs *rs, const struct sockaddr *addr, socklen_t length)
{
	union rs_name to;
	struct rs_peer *peer;

	if (addr && length >= sizeof(addr->sa_family) && addr->sa_family == AF_UNSPEC) {
		rs->datagrams->connected = NULL;
		return 0;
	}
	if (rs_name_read(rs, addr, length, &to) || bind_to_any(rs))
		return -1;
	peer = rs_peer_of(rs, &to);
	if (!peer || rs_peer_ask(rs, peer))
		return -1;
	rs->datagrams->connected = peer;
	rs->error = 0;
	return 0;
}

static const struct sockaddr *datagram_peer_name(const struct rs *rs)
{
	const struct rs_peer *c = rs->datagrams->connected;

	return c ? &c->name.any : NULL;
}

/* Returns the source address of datagrams to a connected socket's peer, once it is known. */
static void datagram_own_name(const struct rs *rs, struct sockaddr_storage *to)
{
	const struct rs_peer *c = rs->datagrams->connected;
	union rs_name own = rs_name_of((struct sockaddr *)to);

	if (!c || c->local.any.sa_family == AF_UNSPEC || own.any.sa_family == AF_UNSPEC || !rs_name_is_any(&own))
		return;
	memcpy(to, &c->local, sizeof(c->local));
	((struct sockaddr_in *)to)->sin_port = own.four.sin_port; /* IPv6's port number is at the same offset */
}

/* ---- sending ----------------------------------------------------------------------- */

static bool datagram_can_send(struct rs *rs)
{
	const struct rs_peer *c = rs->datagrams->connected;

	if (rs->broken || rs->error || (c && c->waiting.bytes > rs->options.send_bytes))
		return rs->broken || rs->error;
	for (const struct rs_pair *p = rs->datagrams->pairs; p; p = p->next)
		if (!rs_pair_has_room(p))
			return false;
	return true;
}

/* Returns the error that occurred since the last call, and clears it. */
static int take_error(struct rs *rs)
{
	int error = rs->error;

	if (rs->closed)
		return EBADF;
	rs->error = 0;
	return error ? error : rs->broken ? ENETDOWN : 0;
}

/* The longest message that rdma-core's sockets forward; the port's MTU may permit less. */
static size_t longest_to(const union rs_name *to)
{
	return RS_LARGEST - (to->any.sa_family == AF_INET6 ? 28 : 16);
}

/* Copies the bytes of all vectors into a message for that destination; NULL with errno set on failure. */
static struct rs_message *gather(const struct iovec *iov, int count, const union rs_name *to)
{
	struct rs_cursor from = { .iov = iov, .left = count };
	ssize_t total = rs_length(iov, count);
	struct rs_message *m;

	if (total < 0)
		return NULL;
	if (total > (ssize_t)longest_to(to)) {
		errno = EMSGSIZE;
		return NULL;
	}
	m = rs_message_new((uint32_t)total);
	if (m)
		rs_move(&from, m->data, m->length, false);
	return m;
}

/* Keeps a message until the peer's queue pair is known. */
static void keep(struct rs *rs, struct rs_peer *peer, struct rs_message *m)
{
	if (peer->waiting.bytes > rs->options.send_bytes)
		free(m); /* dropped, as UDP may drop messages that wait for an ARP reply */
	else
		rs_message_append(&peer->waiting, m);
}

/* Takes ownership of the message if it can be sent or its peer is being resolved; otherwise the caller
 * keeps it. Returns 0 or an errno value. */
static int try_to_send(struct rs *rs, const union rs_name *to, struct rs_message **m)
{
	struct rs_peer *peer;
	int error = take_error(rs);

	if (error)
		return error;
	peer = rs_peer_of(rs, to);
	if (!peer || rs_peer_ask(rs, peer))
		return errno;
	if (!peer->pair && peer->announced && !peer->id) {
		rs_udp_send(rs, peer, *m);
		free(*m);
		*m = NULL;
	} else if (!peer->pair && (peer != rs->datagrams->connected || datagram_can_send(rs))) {
		keep(rs, peer, *m);
		*m = NULL;
	} else if (peer->pair && rs_pair_has_room(peer->pair)) {
		error = rs_pair_send(rs, peer, (*m)->data, (*m)->length);
		free(*m);
		*m = NULL;
	}
	return error;
}

static void free_message(void *message)
{
	free(*(struct rs_message **)message);
}

/* Returns 0 or an errno value. The peer is looked up again after each wait, because it may have been
 * removed meanwhile. */
static int send_to(struct rs *rs, const union rs_name *to, struct rs_message *m, int flags)
{
	int error = try_to_send(rs, to, &m);

	pthread_cleanup_push(free_message, &m);
	while (m && !error) {
		error = rs_wait_unless(rs, datagram_can_send, flags);
		if (!error)
			error = try_to_send(rs, to, &m);
	}
	pthread_cleanup_pop(1);
	return error;
}

static int where_to(struct rs *rs, const struct sockaddr *addr, socklen_t length, union rs_name *to)
{
	if (addr)
		return rs_name_read(rs, addr, length, to);
	if (!rs->datagrams->connected)
		return rs_fail(EDESTADDRREQ);
	*to = rs->datagrams->connected->name;
	return 0;
}

static ssize_t datagram_send(struct rs *rs, const struct iovec *iov, int count, int flags, const struct sockaddr *addr,
	socklen_t length)
{
	struct rs_message *whole;
	union rs_name to;
	ssize_t length_sent;
	int error;

	if (flags & MSG_OOB)
		return rs_fail(EOPNOTSUPP);
	if (rs->tx.ended)
		return rs_fail(EPIPE);
	if (where_to(rs, addr, length, &to) || bind_to_any(rs))
		return -1;
	whole = gather(iov, count, &to);
	if (!whole)
		return -1;
	length_sent = whole->length;
	rs_datagram_progress(rs);
	error = send_to(rs, &to, whole, flags);
	return error ? rs_fail(error) : length_sent;
}

/* ---- receiving --------------------------------------------------------------------- */

static bool datagram_can_receive(struct rs *rs)
{
	return rs->datagrams->arrived.first || rs->error || rs->broken || rs->no_receive;
}

/* from and length may be NULL; *all is set to the full length of the message. */
static ssize_t datagram_receive(struct rs *rs, const struct iovec *iov, int count, int flags, struct sockaddr *from,
	socklen_t *length,
			    size_t *all)
{
	struct rs_messages *arrived = &rs->datagrams->arrived;
	struct rs_cursor to = { .iov = iov, .left = count };
	int error = 0;
	size_t n;

	if (flags & MSG_OOB)
		return rs_fail(EOPNOTSUPP);
	rs_datagram_progress(rs);
	if (!arrived->first)
		error = rs_wait_unless(rs, datagram_can_receive, flags);
	if (!arrived->first) {
		error = error ? error : take_error(rs);
		return error ? rs_fail(error) : 0;
	}
	n = rs_move(&to, arrived->first->data, arrived->first->length, true);
	*all = arrived->first->length;
	if (from && length)
		rs_write_name(rs, &arrived->first->from.any, from, length);
	if (!(flags & MSG_PEEK))
		free(rs_message_take(arrived));
	return (ssize_t)(flags & MSG_TRUNC ? *all : n);
}

/* ---- the end ----------------------------------------------------------------------- */

static int datagram_shutdown(struct rs *rs, int how)
{
	if (!rs->datagrams->connected)
		return rs_fail(ENOTCONN);
	if (how != SHUT_RD)
		rs->tx.ended = true;
	if (how != SHUT_WR)
		rs->no_receive = true;
	rs_signal(rs);
	return 0;
}

static bool all_sent(struct rs *rs)
{
	const struct rs_datagrams *d = rs->datagrams;

	for (const struct rs_pair *p = d->pairs; p; p = p->next)
		if (p->free_count < p->sends && !rs->broken)
			return false;
	for (uint32_t i = 0; i < RS_BUCKETS; i++)
		for (const struct rs_peer *p = d->peers[i]; p; p = p->next)
			if (p->waiting.first && !rs->broken)
				return false;
	return true;
}

/* Waits until the messages sent have left. */
static void datagram_finish(struct rs *rs)
{
	int64_t until = rs_now_ns() + CLOSE_NS;
	int error;

	do
		error = rs_wait(rs, all_sent, until);
	while (error == EINTR);
}

/* ---- the beginning ----------------------------------------------------------------- */

static const struct rs_kind kind = {
	.type = SOCK_DGRAM, .protocol = IPPROTO_UDP, .free = datagram_free, .descriptor = datagram_descriptor,
	.progress = rs_datagram_progress, .arm = rs_datagram_arm, .take_events = rs_datagram_take_events,
	.can_send = datagram_can_send, .can_receive = datagram_can_receive, .bind = datagram_bind, .connect = datagram_connect,
	.shutdown = datagram_shutdown, .finish = datagram_finish, .peer_name = datagram_peer_name,
		.own_name = datagram_own_name,
	.send = datagram_send, .receive = datagram_receive,
};

int rs_datagram_make(struct rs *rs)
{
	struct rs_datagrams *d = calloc(1, sizeof(*d));

	if (!d)
		return -1;
	d->poller = epoll_create1(EPOLL_CLOEXEC);
	if (d->poller < 0) {
		free(d);
		return -1;
	}
	d->udp.fd = -1;
	rs->datagrams = d;
	rs->kind = &kind;
	rs->state = RS_DATAGRAM;
	return 0;
}
