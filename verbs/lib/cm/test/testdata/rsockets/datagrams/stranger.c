/* stranger.c - datagrams from a queue pair that does not belong to an rsocket. */
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "datagrams.h"

/* A queue pair of type UD that is no rsocket's, and knows a bound socket's queue pair. */
struct stranger {
	struct rdma_cm_id *id;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	uint8_t *memory;
	uint32_t qpn;
	bool global; /* datagrams have a GRH with the sender's address */
};

static struct stranger stranger_to(union place *to)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD, .cap = { 8, 8, 1, 1, 0 } };
	struct rdma_conn_param param = { 0 };
	struct stranger s = { .memory = aligned_alloc(4096, 4096) };

	CHECK(s.memory && rdma_create_id(NULL, &s.id, NULL, RDMA_PS_UDP) == 0);
	CHECK(rdma_resolve_addr(s.id, NULL, &to->any, 120000) == 0);
	CHECK(rdma_create_qp(s.id, NULL, &attr) == 0 && rdma_resolve_route(s.id, 120000) == 0);
	CHECK(rdma_connect(s.id, &param) == 0 && s.id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	s.qpn = s.id->event->param.ud.qp_num;
	s.global = s.id->event->param.ud.ah_attr.is_global;
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

/* Sends the header with which each datagram of a socket begins, and 10 bytes of sent, without any checks. */
static void stranger_says(struct stranger *s, const uint8_t *header, uint32_t n, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)s->memory, length, s->mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
					.wr.ud = { s->ah, s->qpn, RDMA_UDP_QKEY } };
	struct ibv_wc wc;
	int got_one;

	memcpy(s->memory, header, n);
	memcpy(s->memory + n, sent, 10);
	CHECK(ibv_post_send(s->id->qp, &wr, &bad) == 0);
	while (!(got_one = ibv_poll_cq(s->id->send_cq, 1, &wc)))
		;
	CHECK(got_one == 1 && wc.status == IBV_WC_SUCCESS);
}

/* Writes the header of a socket's datagram: version, length, port number, address. Returns its length. */
static uint32_t header_of(const union place *name, uint8_t *at)
{
	bool four = name->any.sa_family == AF_INET || IN6_IS_ADDR_V4MAPPED(&name->six.sin6_addr);

	memset(at, 0, 24);
	at[0] = four ? 4 : 6;
	at[1] = four ? 8 : 24;
	memcpy(at + 2, &name->four.sin_port, 2);
	if (name->any.sa_family == AF_INET)
		memcpy(at + 4, &name->four.sin_addr, 4);
	else
		memcpy(at + (four ? 4 : 8), name->six.sin6_addr.s6_addr + (four ? 12 : 0), four ? 4 : 16);
	return at[1];
}

/* Malformed datagrams are dropped, and those that name another host as their sender, where the GRH says who it was. */
void case_stranger(void)
{
	union place server, from, host = place(address, htons(999)), other;
	int a = datagram_socket(0), b = bound(address, &server);
	struct stranger s = stranger_to(&server);
	uint8_t header[24];
	uint32_t n = header_of(&host, header);

	for (uint32_t i = 0; i < n; i++)
		stranger_says(&s, header, n, i);
	for (uint8_t version = 0; version < 10; version++) {
		header[0] = version;
		if (version != (n == 8 ? 4 : 6))
			stranger_says(&s, header, n, n + 10);
	}
	header_of(&host, header);
	header[1] = 255;
	stranger_says(&s, header, n, n + 10);
	header_of(&host, header);
	header[2] = header[3] = 0;
	stranger_says(&s, header, n, n + 10);
	other = place(family == AF_INET ? "10.77.0.9" : strchr(address, '.') ? "::ffff:10.77.0.9" : "fd77::9", htons(999));
	n = header_of(&other, header);
	if (s.global)
		stranger_says(&s, header, n, n + 10);
	n = header_of(&host, header);
	stranger_says(&s, header, n, n + 10);
	from = receive(b, 10);
	CHECK(same(&from, &host));
	send_to(b, &from, longest());
	REFUSES(rrecv(b, got, 1, MSG_DONTWAIT), EAGAIN); /* its other datagrams were dropped */
	send_to(a, &server, 10);
	from = receive(b, 10);
	send_to(b, &from, 500);
	receive(a, 500);
	stranger_gone(&s);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}

/* Datagrams of any bytes, and such whose header is right but for one byte: the socket goes on. */
void case_stranger_random(void)
{
	union place server, from, host = place(address, htons(999));
	int b = bound(address, &server);
	struct stranger s = stranger_to(&server);
	uint8_t header[24], any[24];
	uint32_t n = header_of(&host, header);
	unsigned state = 1;

	for (int i = 0; i < 2000; i++) {
		memcpy(any, header, sizeof(any));
		for (size_t k = 0; i % 4 == 0 && k < sizeof(any); k++)
			any[k] = (uint8_t)rand_r(&state);
		any[(unsigned)rand_r(&state) % n] = (uint8_t)rand_r(&state);
		stranger_says(&s, any, sizeof(any), (uint32_t)rand_r(&state) % (i % 8 ? 64 : 1000));
		if (i % 16 == 0)
			rrecv(b, got, (size_t)rand_r(&state) % sizeof(got), MSG_DONTWAIT);
	}
	while (rrecv(b, got, sizeof(got), MSG_DONTWAIT) >= 0)
		;
	stranger_says(&s, header, n, n + 10);
	from = receive(b, 10);
	CHECK(same(&from, &host));
	stranger_gone(&s);
	CHECK(rclose(b) == 0);
}

/* ---- a socket of rdma-core, by hand: a queue pair and a UDP socket of the kernel ------------------------ */

struct foreign {
	struct stranger qp;
	int udp;
	union place name;
};

/* The kernel has loopback addresses. The socket at to is only used to make the queue pair. */
static struct foreign foreign_on_loopback(union place *to)
{
	struct foreign f = { .qp = stranger_to(to), .name = place(loopback, 0) };
	socklen_t length = sizeof(f.name);
	struct ibv_sge sge = { (uintptr_t)f.qp.memory, 4096, f.qp.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	f.udp = socket(family, SOCK_DGRAM, 0);
	CHECK(f.udp >= 0 && bind(f.udp, &f.name.any, size_of(&f.name)) == 0);
	CHECK(getsockname(f.udp, &f.name.any, &length) == 0 && ibv_post_recv(f.qp.id->qp, &wr, &bad) == 0);
	return f;
}

/* Writes the header of a UDP message. Returns its length. */
static uint32_t announcement(const struct foreign *f, uint8_t op, uint8_t *at)
{
	bool four = family == AF_INET;
	uint32_t qpn = htonl(f->qp.id->qp->qp_num);

	memset(at, 0, 28);
	memset(at, 0x55, 4);
	at[4] = four ? 4 : 6;
	at[5] = op;
	at[6] = four ? 16 : 28;
	memcpy(at + 8, &qpn, 4);
	memcpy(at + 12, four ? (void *)&f->name.four.sin_addr : (void *)&f->name.six.sin6_addr, four ? 4 : 16);
	return at[6];
}

static void announce(const struct foreign *f, const union place *to, uint8_t op, size_t n)
{
	uint8_t bytes[28 + 100];
	uint32_t head = announcement(f, op, bytes);

	memcpy(bytes + head, sent, n);
	CHECK(sendto(f->udp, bytes, head + n, 0, &to->any, size_of(to)) == (ssize_t)(head + n));
}

/* Waits for a UDP message with n bytes of sent, and returns its sender. */
static union place announced(const struct foreign *f, uint8_t op, size_t n)
{
	uint8_t bytes[4096], wants[28];
	uint32_t head = announcement(f, op, wants);
	union place from;
	socklen_t length = sizeof(from);

	CHECK(recvfrom(f->udp, bytes, sizeof(bytes), 0, &from.any, &length) == (ssize_t)(head + n));
	CHECK(!memcmp(bytes, wants, 8) && !memcmp(bytes + 12, wants + 12, head - 12) && !memcmp(bytes + head, sent, n));
	CHECK(bytes[8] == 0 && (bytes[9] || bytes[10] || bytes[11]));
	return from;
}

/* Returns whether a datagram has n bytes of sent, from that socket. */
static bool is(const struct foreign *f, const struct ibv_wc *wc, const union place *from, size_t n)
{
	uint8_t header[24];
	uint32_t head = header_of(from, header);

	return wc->byte_len == 40 + head + n && !memcmp(f->qp.memory + 40, header, head) &&
	       !memcmp(f->qp.memory + 40 + head, sent, n);
}

static void foreign_gone(struct foreign *f)
{
	close(f->udp);
	stranger_gone(&f->qp);
}

/* A socket of rdma-core sends first: by UDP, and gets a response with the socket's queue pair. */
void case_kernel_first(void)
{
	union place server, from;
	int b = bound(loopback, &server);
	struct foreign f = foreign_on_loopback(&server);
	struct ibv_wc wc;
	int n;

	CHECK(sendto(f.udp, sent, 40, 0, &server.any, size_of(&server)) == 40); /* nothing of that protocol */
	announce(&f, &server, 9, 10);
	announce(&f, &server, 0, 100);
	from = receive(b, 100);
	CHECK(same(&from, &f.name));
	from = announced(&f, 7, 0);
	CHECK(same(&from, &server));
	send_to(b, &f.name, 77);
	while (!(n = ibv_poll_cq(f.qp.id->recv_cq, 1, &wc)))
		;
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS && is(&f, &wc, &server, 77));
	foreign_gone(&f);
	CHECK(rclose(b) == 0);
}

/* The other one sends last: the first message goes by UDP, those after the response to the queue pair. */
void case_kernel_later(void)
{
	union place server, from;
	int b = bound(loopback, &server);
	struct foreign f = foreign_on_loopback(&server);
	struct ibv_wc wc;
	int n;

	send_to(b, &f.name, 33);
	from = announced(&f, 0, 33);
	CHECK(same(&from, &server));
	announce(&f, &server, 7, 0);
	do
		send_to(b, &f.name, 55); /* by UDP until the response has been read */
	while (!(n = ibv_poll_cq(f.qp.id->recv_cq, 1, &wc)));
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS && is(&f, &wc, &server, 55));
	foreign_gone(&f);
	CHECK(rclose(b) == 0);
}
