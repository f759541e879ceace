/* sockets.c - binding, refusing and closing sockets. */
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sys/resource.h>
#include <unistd.h>

#include "datagrams.h"

/* A bind that failed for lack of a descriptor is completed when there is one. */
void case_served_later(void)
{
	union place any = place(wildcard, 0), server, from;
	int a = datagram_socket(0), b, free_one = dup(0);
	struct rlimit before, none;

	CHECK(free_one >= 0 && close(free_one) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
	none = (struct rlimit){ (rlim_t)free_one, before.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	REFUSES(rbind(a, &any.any, size_of(&any)), EMFILE);
	REFUSES(rsendto(a, sent, 1, 0, &any.any, size_of(&any)), EMFILE);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	b = bound(address, &server);
	send_to(a, &server, 10);
	from = receive(b, 10);
	send_to(b, &from, 20);
	receive(a, 20);
	REFUSES(rbind(a, &any.any, size_of(&any)), EINVAL);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* Calls for streams only, and invalid arguments. */
void case_arguments(void)
{
	union place server;
	int a = datagram_socket(0), b = bound(address, &server), value;
	socklen_t length = sizeof(value);

	REFUSES(rlisten(a, 1), EOPNOTSUPP);
	REFUSES(raccept(a, NULL, NULL), EOPNOTSUPP);
	REFUSES(rshutdown(a, SHUT_WR), ENOTCONN);
	REFUSES(rbind(b, &server.any, size_of(&server)), EINVAL);
	REFUSES(rbind(a, &server.any, size_of(&server)), EADDRINUSE);
	REFUSES(rsendto(a, sent, 1, MSG_OOB, &server.any, size_of(&server)), EOPNOTSUPP);
	REFUSES(rsendto(a, sent, 1, 0, &server.any, 3), EINVAL);
	CHECK(rgetsockopt(a, SOL_SOCKET, SO_TYPE, &value, &length) == 0 && value == SOCK_DGRAM);
	CHECK(rgetsockopt(a, SOL_SOCKET, SO_PROTOCOL, &value, &length) == 0 && value == IPPROTO_UDP);
	CHECK(rconnect(a, &server.any, size_of(&server)) == 0 && rshutdown(a, SHUT_RDWR) == 0);
	REFUSES(rsend(a, sent, 1, 0), EPIPE);
	CHECK(rrecv(a, got, 1, 0) == 0);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* For an address that is not link-local sin6_scope_id has no meaning (ipv6(7)): a socket connected to it
 * receives from it, and its name has no scope. */
void case_scope(void)
{
	union place server, peer, self;
	socklen_t length = sizeof(peer);
	int a = datagram_socket(0), b = bound(address, &server);

	if (family == AF_INET6)
		server.six.sin6_scope_id = 77;
	CHECK(rconnect(a, &server.any, size_of(&server)) == 0);
	CHECK(rgetpeername(a, &peer.any, &length) == 0);
	CHECK(family != AF_INET6 || peer.six.sin6_scope_id == 0);
	CHECK(rsend(a, sent, 500, 0) == 500);
	self = receive(b, 500);
	send_to(b, &self, 600);
	CHECK(polled(a, POLLIN, 60000) == POLLIN);
	peer = receive(a, 600);
	if (family == AF_INET6)
		server.six.sin6_scope_id = 0;
	CHECK(same(&peer, &server));
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* Messages of a socket that is closed at once arrive. */
void case_close(void)
{
	union place server;
	int a, b = bound(address, &server);

	for (int i = 0; i < 20; i++) {
		a = datagram_socket(0);
		send_to(a, &server, 900);
		CHECK(rclose(a) == 0);
		receive(b, 900);
	}
	CHECK(rclose(b) == 0);
}

static void *read_one(void *argument)
{
	int fd = *(int *)argument;

	CHECK(rrecv(fd, got, sizeof(got), 0) == -1 && errno == EBADF);
	return NULL;
}

/* A thread that waits is woken when its socket is closed. */
void case_close_wakes(void)
{
	union place server;
	int b = bound(address, &server);
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, read_one, &b) == 0);
	usleep(100000);
	CHECK(rclose(b) == 0 && pthread_join(thread, NULL) == 0);
}

/* Returns an id that is bound and does not listen, so that others may be bound to the same address. */
static struct rdma_cm_id *bound_id(union place *at)
{
	struct rdma_cm_id *id;
	int yes = 1;

	CHECK(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP) == 0);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)) == 0);
	CHECK(rdma_bind_addr(id, &at->any) == 0);
	at->four.sin_port = rdma_get_src_port(id);
	return id;
}

/* A socket that was bound and then could not listen is unchanged: it holds no port number, and can be
 * bound to another, or to the same one later. */
static void bound_later(bool same_port)
{
	union place at = place(address, 0), from, other = at;
	struct rdma_cm_id *id = bound_id(&at);
	int a = datagram_socket(0), b = datagram_socket(0), yes = 1;

	CHECK(rsetsockopt(b, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0);
	REFUSES(rbind(b, &at.any, size_of(&at)), EADDRINUSE);
	REFUSES(rbind(b, &at.any, size_of(&at)), EADDRINUSE);
	CHECK(rdma_destroy_id(id) == 0);
	if (same_port)
		other = at;
	CHECK(rbind(b, &other.any, size_of(&other)) == 0);
	other = name_of(b);
	send_to(a, &other, 10);
	from = receive(b, 10);
	send_to(b, &from, 20);
	receive(a, 20);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

void case_bound_elsewhere(void)
{
	bound_later(true);
	bound_later(false);
}
