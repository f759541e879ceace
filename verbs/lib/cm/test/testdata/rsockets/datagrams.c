/* datagrams.c - one named case of rsockets of type SOCK_DGRAM a run, on a urdmad with
 * one port whose address is the second argument. Within one urdmad nothing is lost
 * that there is room for. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"

#define LONGEST 65507

static const char *address;
static uint8_t sent[LONGEST + 1], got[LONGEST + 1];

static struct sockaddr_in place(const char *host, uint16_t port_be)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = port_be };

	CHECK(inet_pton(AF_INET, host, &in.sin_addr) == 1);
	return in;
}

static int datagram_socket(int flags)
{
	int fd = rsocket(AF_INET, SOCK_DGRAM | flags, 0);

	CHECK(fd >= 0);
	return fd;
}

static struct sockaddr_in name_of(int fd)
{
	struct sockaddr_in name;
	socklen_t length = sizeof(name);

	CHECK(rgetsockname(fd, (struct sockaddr *)&name, &length) == 0 && length == sizeof(name));
	return name;
}

/* Bound to a port number of urdmad's choice. */
static int bound(const char *host, struct sockaddr_in *name)
{
	struct sockaddr_in any = place(host, 0);
	int fd = datagram_socket(0);

	CHECK(rbind(fd, (struct sockaddr *)&any, sizeof(any)) == 0);
	*name = name_of(fd);
	CHECK(name->sin_port);
	return fd;
}

static bool same(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
	return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
}

static void send_to(int fd, const struct sockaddr_in *to, size_t n)
{
	CHECK(rsendto(fd, sent, n, 0, (const struct sockaddr *)to, sizeof(*to)) == (ssize_t)n);
}

/* Whom the next message is from, which must be n bytes of sent. */
static struct sockaddr_in receive(int fd, size_t n)
{
	struct sockaddr_in from;
	socklen_t length = sizeof(from);

	memset(got, 0, n);
	CHECK(rrecvfrom(fd, got, sizeof(got), 0, (struct sockaddr *)&from, &length) == (ssize_t)n && length == sizeof(from));
	CHECK(!memcmp(got, sent, n));
	return from;
}

static short polled(int fd, short events, int timeout)
{
	struct pollfd p = { .fd = fd, .events = events };

	CHECK(rpoll(&p, 1, timeout) >= 0);
	return p.revents;
}

/* Messages of all lengths, and answers to where they came from. */
static void case_echo(void)
{
	static const size_t sizes[] = { 0, 1, 1000, 1008, 1009, 5000, 20000, LONGEST };
	struct sockaddr_in server, from;
	int a = datagram_socket(0), b = bound(address, &server);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		send_to(a, &server, sizes[i]);
		from = receive(b, sizes[i]);
		CHECK(from.sin_port == name_of(a).sin_port);
		send_to(b, &from, sizes[i]);
		from = receive(a, sizes[i]);
		CHECK(same(&from, &server));
	}
	REFUSES(rsendto(a, sent, LONGEST + 1, 0, (struct sockaddr *)&server, sizeof(server)), EMSGSIZE);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* To and from any address of the host, 127.0.0.1 among them. */
static void case_any(void)
{
	const char *hosts[] = { address, "127.0.0.1" };
	struct sockaddr_in server, from;
	int a, b = bound("0.0.0.0", &server);

	for (int i = 0; i < 2; i++) {
		server.sin_addr = place(hosts[i], 0).sin_addr;
		a = datagram_socket(0);
		CHECK(rconnect(a, (struct sockaddr *)&server, sizeof(server)) == 0);
		CHECK(rsend(a, sent, 100, 0) == 100);
		from = receive(b, 100);
		send_to(b, &from, 50);
		from = receive(a, 50);
		CHECK(same(&from, &server));
		CHECK(rclose(a) == 0);
	}
	CHECK(rclose(b) == 0);
}

/* A connected socket hears its peer alone, until it is not connected any more. */
static void case_connected(void)
{
	struct sockaddr_in server, other, own, from = { .sin_family = AF_UNSPEC };
	int a = datagram_socket(0), b = bound(address, &server), c = bound(address, &other);
	socklen_t length = sizeof(from);

	REFUSES(rsend(a, sent, 1, 0), EDESTADDRREQ);
	REFUSES(rgetpeername(a, (struct sockaddr *)&from, &length), ENOTCONN);
	CHECK(rconnect(a, (struct sockaddr *)&server, sizeof(server)) == 0);
	CHECK(rgetpeername(a, (struct sockaddr *)&from, &length) == 0 && same(&from, &server));
	CHECK(rsend(a, sent, 10, 0) == 10);
	own = receive(b, 10);
	CHECK(name_of(a).sin_addr.s_addr == own.sin_addr.s_addr);
	send_to(c, &own, 20);
	send_to(b, &own, 30);
	receive(a, 30);
	REFUSES(rrecv(a, got, 1, MSG_DONTWAIT), EAGAIN);
	send_to(a, &other, 40);
	receive(c, 40);
	from.sin_family = AF_UNSPEC;
	CHECK(rconnect(a, (struct sockaddr *)&from, sizeof(from)) == 0);
	send_to(c, &own, 20);
	receive(a, 20);
	CHECK(rclose(a) == 0 && rclose(b) == 0 && rclose(c) == 0);
}

/* What doesn't fit is cut; vectors, and messages that are looked at. */
static void case_vectors(void)
{
	struct sockaddr_in server;
	int a = datagram_socket(0), b = bound(address, &server);
	struct iovec out[3] = { { sent, 3 }, { NULL, 0 }, { sent + 3, 7 } }, in[2] = { { got, 2 }, { got + 2, 4 } };
	struct msghdr to = { .msg_name = &server, .msg_namelen = sizeof(server), .msg_iov = out, .msg_iovlen = 3 };
	struct sockaddr_in name;
	struct msghdr from = { .msg_name = &name, .msg_namelen = sizeof(name), .msg_iov = in, .msg_iovlen = 2 };

	CHECK(rsendmsg(a, &to, 0) == 10);
	CHECK(rrecv(b, got, 4, MSG_PEEK) == 4 && rrecv(b, got, 4, MSG_PEEK | MSG_TRUNC) == 10);
	CHECK(rrecvmsg(b, &from, 0) == 6 && (from.msg_flags & MSG_TRUNC) && name.sin_port == name_of(a).sin_port);
	CHECK(!memcmp(got, sent, 6));
	CHECK(rconnect(a, (struct sockaddr *)&server, sizeof(server)) == 0 && rwritev(a, out, 3) == 10);
	CHECK(rreadv(b, in, 2) == 6);
	REFUSES(rrecv(b, got, 4, MSG_DONTWAIT), EAGAIN);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

static void case_poll(void)
{
	struct sockaddr_in server;
	int a = datagram_socket(SOCK_NONBLOCK), b = bound(address, &server);

	CHECK(polled(b, POLLIN | POLLOUT, 0) == POLLOUT);
	CHECK(polled(b, POLLIN, 50) == 0);
	send_to(a, &server, 100);
	CHECK(polled(b, POLLIN, 20000) == POLLIN);
	receive(b, 100);
	CHECK(polled(b, POLLIN, 0) == 0 && polled(a, POLLOUT, 20000) == POLLOUT);
	REFUSES(rrecv(a, got, 1, 0), EAGAIN);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* Nobody is there: a connected socket hears of it, once. */
static void case_refused(void)
{
	struct sockaddr_in gone;
	int a = datagram_socket(0), b = bound(address, &gone), value = 0;
	socklen_t length = sizeof(value);

	CHECK(rclose(b) == 0);
	CHECK(rconnect(a, (struct sockaddr *)&gone, sizeof(gone)) == 0);
	REFUSES(rrecv(a, got, 1, 0), ECONNREFUSED);
	CHECK(rsend(a, sent, 1, 0) == 1);
	CHECK(polled(a, POLLIN, 20000) & POLLERR);
	CHECK(rgetsockopt(a, SOL_SOCKET, SO_ERROR, &value, &length) == 0 && value == ECONNREFUSED);
	REFUSES(rrecv(a, got, 1, MSG_DONTWAIT), EAGAIN);
	CHECK(rclose(a) == 0);
}

/* What streams have alone, and what was got wrong. */
static void case_arguments(void)
{
	struct sockaddr_in server;
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(9), .sin6_addr.s6_addr = { 0xfe, 0x80, [15] = 1 } };
	int a = datagram_socket(0), b = bound(address, &server), value;
	socklen_t length = sizeof(value);

	REFUSES(rlisten(a, 1), EOPNOTSUPP);
	REFUSES(raccept(a, NULL, NULL), EOPNOTSUPP);
	REFUSES(rshutdown(a, SHUT_WR), ENOTCONN);
	REFUSES(rbind(b, (struct sockaddr *)&server, sizeof(server)), EINVAL);
	REFUSES(rbind(a, (struct sockaddr *)&server, sizeof(server)), EADDRINUSE);
	REFUSES(rsendto(a, sent, 1, MSG_OOB, (struct sockaddr *)&server, sizeof(server)), EOPNOTSUPP);
	REFUSES(rsendto(a, sent, 1, 0, (struct sockaddr *)&server, 3), EINVAL);
	REFUSES(rsendto(a, sent, 1, 0, (struct sockaddr *)&six, sizeof(six)), EAFNOSUPPORT);
	CHECK(rgetsockopt(a, SOL_SOCKET, SO_TYPE, &value, &length) == 0 && value == SOCK_DGRAM);
	CHECK(rgetsockopt(a, SOL_SOCKET, SO_PROTOCOL, &value, &length) == 0 && value == IPPROTO_UDP);
	CHECK(rconnect(a, (struct sockaddr *)&server, sizeof(server)) == 0 && rshutdown(a, SHUT_RDWR) == 0);
	REFUSES(rsend(a, sent, 1, 0), EPIPE);
	CHECK(rrecv(a, got, 1, 0) == 0);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* Messages of a socket that is closed at once arrive. */
static void case_close(void)
{
	struct sockaddr_in server;
	int a, b = bound(address, &server);

	for (int i = 0; i < 20; i++) {
		a = datagram_socket(0);
		send_to(a, &server, 3000);
		CHECK(rclose(a) == 0);
		receive(b, 3000);
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
static void case_close_wakes(void)
{
	struct sockaddr_in server;
	int b = bound(address, &server);
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, read_one, &b) == 0);
	usleep(100000);
	CHECK(rclose(b) == 0 && pthread_join(thread, NULL) == 0);
}

/* More than a socket has room for: what is there is whole, and it goes on working. */
static void case_flood(void)
{
	struct sockaddr_in server, from;
	int a = datagram_socket(0), b = bound(address, &server), n = 0;

	for (int i = 0; i < 3000; i++)
		send_to(a, &server, 1 + (size_t)i % 3000);
	while (polled(b, POLLIN, 300)) {
		socklen_t length = sizeof(from);
		ssize_t size = rrecvfrom(b, got, sizeof(got), 0, (struct sockaddr *)&from, &length);

		CHECK(size > 0 && size <= 3000 && !memcmp(got, sent, (size_t)size));
		n++;
	}
	CHECK(n > 0);
	send_to(a, &server, 10);
	receive(b, 10);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* A port number that another socket has taken over is found again. */
static void case_taken_over(void)
{
	struct sockaddr_in server, from;
	int a = datagram_socket(0), b = bound(address, &server);

	send_to(a, &server, 10);
	from = receive(b, 10);
	CHECK(rclose(b) == 0);
	b = datagram_socket(0);
	CHECK(rbind(b, (struct sockaddr *)&server, sizeof(server)) == 0);
	from.sin_addr = place(address, 0).sin_addr;
	send_to(b, &from, 20); /* which tells a of the new queue pair */
	receive(a, 20);
	send_to(a, &server, 30);
	while (!polled(b, POLLIN, 500))
		send_to(a, &server, 30); /* the first may have gone to the old one */
	receive(b, 30);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* A stranger's queue pair of type UD, which knows that of a bound socket. */
struct stranger {
	struct rdma_cm_id *id;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	uint8_t *memory;
	uint32_t qpn;
};

static struct stranger stranger_to(struct sockaddr_in *to)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD, .cap = { 8, 8, 1, 1, 0 } };
	struct rdma_conn_param param = { 0 };
	struct stranger s = { .memory = aligned_alloc(4096, 4096) };

	CHECK(s.memory && rdma_create_id(NULL, &s.id, NULL, RDMA_PS_UDP) == 0);
	CHECK(rdma_resolve_addr(s.id, NULL, (struct sockaddr *)to, 20000) == 0);
	CHECK(rdma_create_qp(s.id, NULL, &attr) == 0 && rdma_resolve_route(s.id, 20000) == 0);
	CHECK(rdma_connect(s.id, &param) == 0 && s.id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	s.qpn = s.id->event->param.ud.qp_num;
	s.ah = ibv_create_ah(s.id->pd, &s.id->event->param.ud.ah_attr);
	s.mr = ibv_reg_mr(s.id->pd, s.memory, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(s.ah && s.mr);
	return s;
}

static void stranger_gone(struct stranger *s)
{
	CHECK(ibv_dereg_mr(s->mr) == 0 && ibv_destroy_ah(s->ah) == 0);
	rdma_destroy_qp(s->id);
	CHECK(rdma_destroy_id(s->id) == 0);
	free(s->memory);
}

/* The header that each datagram of a socket begins with, and 10 bytes of sent. */
static void stranger_says(struct stranger *s, uint16_t largest)
{
	const uint16_t words[10] = { htons(0x7275), htons(999), 0, htons(1), 0, htons(10), 0, 0, htons(largest), 0 };
	struct ibv_sge sge = { (uintptr_t)s->memory, sizeof(words) + 10, s->mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
					.wr.ud = { s->ah, s->qpn, RDMA_UDP_QKEY } };
	struct ibv_wc wc;
	int n;

	memcpy(s->memory, words, sizeof(words));
	memcpy(s->memory + sizeof(words), sent, 10);
	CHECK(ibv_post_send(s->id->qp, &wr, &bad) == 0);
	while (!(n = ibv_poll_cq(s->id->send_cq, 1, &wc)))
		;
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
}

/* One that says that it takes next to nothing at once gets no answer of more parts
 * than there is room for, and harms nobody. */
static void case_stranger(void)
{
	static const uint16_t largest[] = { 0, 20, 21, 255, 256 };
	struct sockaddr_in server, from;
	int a = datagram_socket(0), b = bound(address, &server);
	struct stranger s = stranger_to(&server);

	for (size_t i = 0; i < sizeof(largest) / sizeof(largest[0]); i++)
		stranger_says(&s, largest[i]);
	from = receive(b, 10);
	CHECK(from.sin_port == htons(999));
	send_to(b, &from, LONGEST);
	REFUSES(rrecv(b, got, 1, MSG_DONTWAIT), EAGAIN); /* the others of its datagrams */
	send_to(a, &server, 10);
	from = receive(b, 10);
	send_to(b, &from, 5000);
	receive(a, 5000);
	stranger_gone(&s);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* A bind that fails for want of a descriptor is made up for when there are some. */
static void case_served_later(void)
{
	struct sockaddr_in any = place("0.0.0.0", 0), server, from;
	int a = datagram_socket(0), b, free_one = dup(0);
	struct rlimit before, none;

	CHECK(free_one >= 0 && close(free_one) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
	none = (struct rlimit){ (rlim_t)free_one, before.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	REFUSES(rbind(a, (struct sockaddr *)&any, sizeof(any)), EMFILE);
	REFUSES(rsendto(a, sent, 1, 0, (struct sockaddr *)&any, sizeof(any)), EMFILE);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	b = bound(address, &server);
	send_to(a, &server, 10);
	from = receive(b, 10);
	send_to(b, &from, 20);
	receive(a, 20);
	REFUSES(rbind(a, (struct sockaddr *)&any, sizeof(any)), EINVAL);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "served_later", case_served_later }, { "echo", case_echo }, { "any", case_any }, { "connected", case_connected }, { "vectors", case_vectors }, { "poll", case_poll },
	{ "refused", case_refused }, { "arguments", case_arguments }, { "close", case_close }, { "close_wakes", case_close_wakes },
	{ "flood", case_flood }, { "taken_over", case_taken_over }, { "stranger", case_stranger },
};

int main(int argc, char **argv)
{
	alarm(50);
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (uint8_t)(i * 7 + (i >> 8));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 3)
			puts(cases[i].name);
		else if (!strcmp(argv[1], cases[i].name)) {
			address = argv[2];
			return cases[i].run(), 0;
		}
	}
	return argc < 3 ? 0 : 2;
}
