/* wire.c - the protocol of rdma-core's rsockets, as bytes: the peer of each socket here is a queue pair that
 * speaks it by hand, also wrongly. */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "streams.h"

#define RING 8192u /* the peer's */
#define RECEIVES 64u
#define KEEPALIVE 0xe0000001

struct buffer { /* in network byte order in private data, in the host's in tables */
	uint64_t addr;
	uint32_t key, length;
};

struct hello {
	uint8_t version, flags;
	uint16_t credits;
	uint8_t reserved[3], iomaps;
	struct buffer table, ring;
};

/* The memory into which a socket writes, with a guard behind the ring. */
struct memory {
	struct buffer table[2];
	struct { uint64_t offset; struct buffer buffer; } iomaps[2];
	uint8_t ring[RING], guard[64], text[RING];
	uint32_t received[RECEIVES], message;
};

struct peer {
	int socket;
	bool iwarp;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct memory *m;
	struct hello said;  /* by the socket, in host byte order */
	uint32_t taken;     /* receives */
	bool lost;          /* the connection has ended */
};

_Static_assert(sizeof(struct hello) == 40 && sizeof(struct buffer) == 16, "layout");

static void post_receive(struct peer *p, uint32_t i)
{
	struct ibv_sge sge = { (uintptr_t)&p->m->received[i], 4, p->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = p->iwarp }, *bad;

	CHECK(ibv_post_recv(p->id->qp, &wr, &bad) == 0);
}

static void make_queues(struct peer *p)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1, .cap = { 64, RECEIVES, 1, 1, 64 } };

	p->iwarp = p->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
	p->m = aligned_alloc(4096, 32768);
	CHECK(p->m && rdma_create_qp(p->id, NULL, &attr) == 0);
	memset(p->m, 0, sizeof(*p->m));
	p->mr = ibv_reg_mr(p->id->pd, p->m, sizeof(*p->m), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(p->mr);
	for (uint32_t i = 0; i < RECEIVES; i++)
		post_receive(p, i);
}

static struct buffer swapped(struct buffer b)
{
	return (struct buffer){ htobe64(b.addr), htonl(b.key), htonl(b.length) };
}

static struct hello hello_of(const struct peer *p)
{
	return (struct hello){ 1, 2, htons(RECEIVES), { 0 }, 2,
			       swapped((struct buffer){ (uintptr_t)p->m->table, p->mr->rkey, 2 }),
			       swapped((struct buffer){ (uintptr_t)p->m->ring, p->mr->rkey, RING / 2 }) };
}

static struct rdma_conn_param param_of(const struct hello *hello, size_t bytes)
{
	return (struct rdma_conn_param){ .private_data = hello, .private_data_len = (uint8_t)bytes, .initiator_depth = 1,
					 .responder_resources = 1, .retry_count = 7, .rnr_retry_count = 7 };
}

/* What a socket states in its private data: version 1 and the flag for mapped buffers. */
static void take_hello(struct peer *p, const struct rdma_cm_event *event)
{
	const uint8_t head[8] = { 1, 2, 384 >> 8, 384 & 255, 0, 0, 0, 0 };

	CHECK(event->param.conn.private_data_len >= sizeof(p->said) && !memcmp(event->param.conn.private_data, head, 8));
	memcpy(&p->said, event->param.conn.private_data, sizeof(p->said));
	p->said.table = swapped(p->said.table); /* the same both ways */
	p->said.ring = swapped(p->said.ring);
	CHECK(p->said.table.length == 2 && p->said.ring.length == 1 << 16 && p->said.table.addr && p->said.ring.addr);
}

static void post(struct peer *p, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	if (p->lost || ibv_post_send(p->id->qp, wr, &bad)) {
		p->lost = true;
		return;
	}
	while (!(n = ibv_poll_cq(p->id->send_cq, 1, &wc)))
		;
	CHECK(n == 1);
	p->lost = wc.status != IBV_WC_SUCCESS;
}

/* Writes bytes, and if there is a message, says it: as immediate data, or on iWARP by a Send of so many bytes. */
static void say(struct peer *p, const void *bytes, uint32_t n, uint64_t addr, uint32_t key, uint32_t message,
	uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)p->m->text, n, p->mr->lkey };
	struct ibv_sge four = { (uintptr_t)&p->m->message, length, p->mr->lkey };
	struct ibv_send_wr write = { .sg_list = &sge, .num_sge = n > 0, .wr.rdma = { addr, key }, .imm_data = htonl(message),
				     .opcode = p->iwarp || !length ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM };
	struct ibv_send_wr send = { .sg_list = &four, .num_sge = 1, .opcode = IBV_WR_SEND };

	memcpy(p->m->text, bytes, n);
	p->m->message = message;
	if (n || !p->iwarp || !length)
		post(p, &write);
	if (p->iwarp && length)
		post(p, &send);
}

static void tell(struct peer *p, uint32_t message)
{
	say(p, "", 0, 0, 0, message, 4);
}

/* Connects to a listener with so many bytes of private data, in which the fields of other that are not 0 replace
 * the right ones. Returns whether it was accepted. */
static bool connect_with(struct peer *p, const struct hello *other, size_t bytes)
{
	int l = listener_of(1);
	struct hello hello;
	struct rdma_conn_param param;

	*p = (struct peer){ .socket = -1 };
	CHECK(rdma_create_id(NULL, &p->id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(p->id, NULL, (struct sockaddr *)&at, 20000) == 0);
	make_queues(p);
	hello = hello_of(p);
	if (other && other->version)
		hello.version = other->version;
	if (other && other->flags)
		hello.flags = other->flags;
	if (other && other->credits)
		hello.credits = other->credits;
	if (other && other->table.length)
		hello.table.length = htonl(other->table.length);
	param = param_of(&hello, bytes);
	CHECK(rdma_resolve_route(p->id, 20000) == 0);
	if (rdma_connect(p->id, &param) == 0) {
		take_hello(p, p->id->event);
		p->socket = raccept(l, NULL, NULL);
		CHECK(p->socket >= 0);
		CHECK(!p->iwarp || ibv_poll_cq(p->id->recv_cq, 1, &(struct ibv_wc){ 0 }) == 0);
		/* on iWARP the socket sends nothing before that */
		tell(p, p->iwarp && hello.flags & 1 ? htonl(KEEPALIVE) : KEEPALIVE);
	}
	CHECK(rclose(l) == 0);
	return p->socket >= 0;
}

static void gone(struct peer *p)
{
	if (p->socket >= 0)
		CHECK(rclose(p->socket) == 0);
	rdma_disconnect(p->id);
	CHECK(ibv_dereg_mr(p->mr) == 0);
	rdma_destroy_qp(p->id);
	CHECK(rdma_destroy_id(p->id) == 0);
	free(p->m);
}

static void data(struct peer *p, const void *text, uint32_t n, uint64_t offset)
{
	say(p, text, n, p->said.ring.addr + offset, p->said.ring.key, n, 4);
}

/* Waits for the socket's next message. */
static uint32_t heard(struct peer *p)
{
	struct ibv_wc wc;
	uint32_t message;
	int n;

	while (!(n = ibv_poll_cq(p->id->recv_cq, 1, &wc)))
		polled(p->socket, 0, 0); /* any call has the socket send what is due */
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == p->taken++ % RECEIVES);
	CHECK(p->iwarp ? wc.byte_len == 4 && !(wc.wc_flags & IBV_WC_WITH_IMM) : wc.wc_flags & IBV_WC_WITH_IMM);
	message = p->iwarp ? p->m->received[wc.wr_id] : ntohl(wc.imm_data);
	post_receive(p, (uint32_t)wc.wr_id);
	return message;
}

static bool table_is(const struct peer *p, int i, uint64_t addr, uint32_t length)
{
	const struct buffer *b = &p->m->table[i];

	return b->addr == addr && b->key == p->said.ring.key && b->length == length;
}

/* The socket must say these words, and write these grants, in this order. */
void case_wire_words(void)
{
	static char text[1 << 16];
	struct peer p;
	char got[8];

	CHECK(connect_with(&p, NULL, sizeof(struct hello)));
	CHECK(heard(&p) == 0x80000180 && table_is(&p, 1, p.said.ring.addr + (1 << 16), 1 << 16));
	data(&p, "hello", 5, 0);
	CHECK(rrecv(p.socket, got, 5, MSG_WAITALL) == 5 && !memcmp(got, "hello", 5));
	CHECK(rsend(p.socket, "answer", 6, 0) == 6 && heard(&p) == 6 && !memcmp(p.m->ring, "answer", 6));
	for (int i = 0; i < 7; i++)
		data(&p, text, RING, 5 + (uint64_t)i * RING);
	data(&p, text, RING - 5, 5 + 7 * RING);
	CHECK(rrecv(p.socket, text, (1 << 16) - 5, MSG_WAITALL) == (1 << 16) - 5);
	CHECK(heard(&p) == 0x80000180 + 9 && table_is(&p, 0, p.said.ring.addr, 1 << 16));
	CHECK(rshutdown(p.socket, SHUT_WR) == 0 && heard(&p) == 0xe0000002);
	say(&p, "", 0, 0, 0, 0, 0); /* a keepalive of rdma-core: an empty Write, to no memory and without a message */
	tell(&p, KEEPALIVE);        /* one as a message */
	tell(&p, 0xe0000002);
	CHECK(rrecv(p.socket, got, 1, 0) == 0 && !p.lost);
	gone(&p);
}

/* A peer of the other byte order: tables have its order, and iWARP's messages that of their sender. */
void case_wire_swapped(void)
{
	struct hello said = { .flags = 3 };
	struct peer p;
	char got[8];

	CHECK(connect_with(&p, &said, sizeof(said)));
	CHECK(heard(&p) == 0x80000180);
	p.m->table[1] = swapped(p.m->table[1]);
	CHECK(table_is(&p, 1, p.said.ring.addr + (1 << 16), 1 << 16));
	say(&p, "hello", 5, p.said.ring.addr, p.said.ring.key, p.iwarp ? htonl(5) : 5, 4);
	CHECK(rrecv(p.socket, got, 5, MSG_WAITALL) == 5 && !memcmp(got, "hello", 5));
	gone(&p);
}

/* Private data that is too short, of another version, or with a table of one entry. */
void case_wire_refused(void)
{
	struct hello other = { .version = 2 }, small = { .table.length = 1 };
	struct peer p;

	CHECK(!connect_with(&p, NULL, 20));
	gone(&p);
	CHECK(!connect_with(&p, &other, sizeof(other)));
	gone(&p);
	CHECK(!connect_with(&p, &small, sizeof(small)));
	gone(&p);
}

/* Connects, has the peer do something, and expects the end of the connection. */
static void ends(void (*act)(struct peer *))
{
	struct peer p;
	char got[8];

	CHECK(connect_with(&p, NULL, sizeof(struct hello)));
	act(&p);
	REFUSES(rrecv(p.socket, got, sizeof(got), 0), ECONNRESET);
	for (size_t i = 0; i < sizeof(p.m->guard); i++)
		CHECK(!p.m->guard[i]);
	gone(&p);
}

static void more_than_granted(struct peer *p) { tell(p, (1 << 17) + 1); }
static void most_that_fits(struct peer *p) { tell(p, 0x1fffffff); }
static void type_1(struct peer *p) { tell(p, 0x20000001); }
static void type_2(struct peer *p) { tell(p, 0x40000001); }
static void type_3(struct peer *p) { tell(p, 0x60000001); }
static void type_5(struct peer *p) { tell(p, 0xa0000001); }
static void behind_the_ring(struct peer *p) { data(p, "hello", 5, (1 << 17) - 4); }
static void before_the_ring(struct peer *p) { data(p, "hello", 5, (uint64_t)-1); }

static void behind_the_table(struct peer *p)
{
	say(p, "hello", 5, p->said.table.addr + 2 * sizeof(struct buffer), p->said.table.key, 0xc0000000, 4);
}

static void short_message(struct peer *p)
{
	say(p, "", 0, 0, 0, 1, 3);
}

static void long_message(struct peer *p)
{
	say(p, "", 0, 0, 0, 1, 8);
}

/* Grants the socket memory, and has it send there. */
static void grant(struct peer *p, uint64_t addr, uint32_t key, uint32_t length)
{
	static char text[RING];
	struct buffer b = { addr, key, length };

	say(p, &b, sizeof(b), p->said.table.addr + sizeof(b), p->said.table.key, 0x80000000 | RECEIVES, 4);
	memset(text, 'x', sizeof(text));
	rsend(p->socket, text, RING / 2, 0); /* uses up the first grant */
	rsend(p->socket, text, sizeof(text), 0);
}

static void grants_others_memory(struct peer *p) { grant(p, (uintptr_t)p->m->guard, p->mr->rkey + 1, 64); }
static void grants_too_much(struct peer *p) { grant(p, (uintptr_t)p->m + sizeof(*p->m) - 1, p->mr->rkey, UINT32_MAX); }

void case_wire_wrong(void)
{
	static void (*const acts[])(struct peer *) = { more_than_granted, most_that_fits, type_1, type_2, type_3, type_5,
						       behind_the_ring, before_the_ring, behind_the_table,
						       grants_others_memory, grants_too_much };
	struct peer p;
	bool iwarp;

	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		ends(acts[i]);
	CHECK(connect_with(&p, NULL, sizeof(struct hello)));
	iwarp = p.iwarp;
	gone(&p);
	if (iwarp) {
		ends(short_message);
		ends(long_message);
	}
}

/* A peer that grants no credits is sent nothing; on iWARP eight remain unused. */
void case_wire_credits(void)
{
	struct hello said = { .credits = htons(10) };
	struct peer p;

	CHECK(connect_with(&p, &said, sizeof(said)));
	for (int i = 0; i < (p.iwarp ? 2 : 10); i++)
		CHECK(rsend(p.socket, "x", 1, MSG_DONTWAIT) == 1);
	REFUSES(rsend(p.socket, "x", 1, MSG_DONTWAIT), EAGAIN);
	tell(&p, 0x80000000 | 11);
	CHECK((polled(p.socket, POLLOUT, 10000) & POLLOUT) && rsend(p.socket, "x", 1, 0) == 1);
	REFUSES(rsend(p.socket, "x", 1, MSG_DONTWAIT), EAGAIN);
	gone(&p);
}

/* Has a socket connect to a listener that speaks by hand, accepts with that many credits, and grants more at once:
 * they must count. */
void case_wire_early(void)
{
	struct sockaddr_in name = place(0);
	struct peer p = { 0 };
	struct rdma_cm_id *listener;
	struct rdma_conn_param param;
	struct hello hello;
	struct pollfd asked;

	CHECK(rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(listener, (struct sockaddr *)&name) == 0 && rdma_listen(listener, 1) == 0);
	name.sin_port = rdma_get_src_port(listener);
	p.socket = stream_socket();
	CHECK(rfcntl(p.socket, F_SETFL, O_NONBLOCK) == 0);
	REFUSES(rconnect(p.socket, (struct sockaddr *)&name, sizeof(name)), EINPROGRESS);
	asked = (struct pollfd){ .fd = listener->channel->fd, .events = POLLIN };
	while (poll(&asked, 1, 0) == 0)
		polled(p.socket, POLLOUT, 1);
	CHECK(rdma_get_request(listener, &p.id) == 0);
	make_queues(&p);
	take_hello(&p, p.id->event);
	hello = hello_of(&p);
	hello.credits = htons(10);
	param = param_of(&hello, sizeof(hello));
	CHECK(rdma_accept(p.id, &param) == 0);
	tell(&p, 0x80000000 | 20);
	CHECK(polled(p.socket, POLLOUT, 120000) & POLLOUT);
	for (int i = 0; i < (p.iwarp ? 12 : 20); i++)
		CHECK(rsend(p.socket, "x", 1, MSG_DONTWAIT) == 1);
	REFUSES(rsend(p.socket, "x", 1, MSG_DONTWAIT), EAGAIN);
	gone(&p);
	CHECK(rdma_destroy_id(listener) == 0);
}

/* What a peer is told when a socket is shut down: in one direction after the other, or in both at once. */
void case_wire_shutdown(void)
{
	struct peer p;

	CHECK(connect_with(&p, NULL, sizeof(struct hello)) && heard(&p) == 0x80000180);
	CHECK(rshutdown(p.socket, SHUT_WR) == 0 && heard(&p) == 0xe0000002);
	CHECK(rshutdown(p.socket, SHUT_RD) == 0 && heard(&p) == 0xe0000000);
	gone(&p);
	CHECK(connect_with(&p, NULL, sizeof(struct hello)) && heard(&p) == 0x80000180);
	CHECK(rshutdown(p.socket, SHUT_RDWR) == 0 && heard(&p) == 0xe0000000);
	gone(&p);
}

static void ignore(int signal)
{
	(void)signal;
}

/* Waits for credits, until a signal comes: nothing is mapped. */
static void map_in_vain(struct peer *p, void *buffer)
{
	const struct itimerval soon = { { 0, 20000 }, { 0, 20000 } }, never = { 0 };
	struct sigaction act = { .sa_handler = ignore };

	CHECK(sigaction(SIGALRM, &act, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
	REFUSES(riomap(p->socket, buffer, 64, PROT_WRITE, 0, 0), EINTR);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	REFUSES(riounmap(p->socket, buffer, 64), EINVAL);
}

static char first[64], second[64];

static pid_t unmapping, mapping;

static void *unmap_first(void *socket)
{
	__atomic_store_n(&unmapping, gettid(), __ATOMIC_RELEASE);
	CHECK(riounmap(*(int *)socket, first, 64) == 0);
	return NULL;
}

static void *map_second(void *socket)
{
	__atomic_store_n(&mapping, gettid(), __ATOMIC_RELEASE);
	CHECK(riomap(*(int *)socket, second, 64, PROT_WRITE, 0, 0) == 0);
	return NULL;
}

/* The peer's table when buffers are mapped while it has granted no credits. */
void case_wire_iomap(void)
{
	struct hello said = { .credits = htons(9) };
	struct peer p;
	pthread_t threads[2];

	CHECK(connect_with(&p, &said, sizeof(said)) && heard(&p) == 0x80000180);
	for (uint32_t i = 0; i < (p.iwarp ? 1 : 9); i++)
		CHECK(rsend(p.socket, "x", 1, MSG_DONTWAIT) == 1 && heard(&p) == 1);
	map_in_vain(&p, first);
	tell(&p, 0x80000000 | 10);
	CHECK(riomap(p.socket, first, 64, PROT_WRITE, 0, 0) == 0 && heard(&p) == 0xc0000000);
	CHECK(pthread_create(&threads[0], NULL, unmap_first, &p.socket) == 0);
	until_asleep(&unmapping); /* it waits for a credit */
	CHECK(pthread_create(&threads[1], NULL, map_second, &p.socket) == 0);
	until_asleep(&mapping);
	tell(&p, 0x80000000 | 12);
	CHECK((heard(&p) ^ heard(&p)) == 1);
	CHECK(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[1], NULL) == 0);
	CHECK(!p.m->iomaps[0].buffer.length && p.m->iomaps[1].buffer.addr == (uintptr_t)second);
	gone(&p);
}

/* What a peer does at random: mostly what it may, to a socket that is used meanwhile. */
static void step(struct peer *p, unsigned *seed)
{
	static char text[RING];
	struct { uint64_t offset; struct buffer buffer; } map;
	uint32_t n = (uint32_t)rand_r(seed) % RING, i = (uint32_t)rand_r(seed), any = (uint32_t)rand_r(seed) << 1;
	struct buffer grant = { (uintptr_t)p->m->ring + n, p->mr->rkey + !(i % 128), i % 3 ? RING - n : 1 };

	switch ((unsigned)rand_r(seed) % 9) {
	case 0:
		tell(p, i % 64 ? KEEPALIVE : any);
		break;
	case 1:
		tell(p, (i % 64 ? 4u : i >> 8) << 29 | any % (i % 16 ? 400 : 1u << 20));
		break;
	case 2:
		data(p, text, n, i % ((1u << 17) - (i % 64 ? RING : 0)));
		break;
	case 3:
		say(p, &grant, sizeof(grant), p->said.table.addr + i % 2 * sizeof(grant), p->said.table.key,
		    0x80000000 | any % 400, 4);
		break;
	case 4: /* the table has no such entries */
		if (i % 64 >= 8)
			break;
		map.offset = i % 2 ? 0 : any;
		map.buffer = grant;
		say(p, &map, sizeof(map), p->said.table.addr + 2 * sizeof(grant) + i % 8 * sizeof(map), p->said.table.key, 0, 0);
		break;
	case 5:
		rsend(p->socket, text, n, MSG_DONTWAIT);
		break;
	case 6:
		rrecv(p->socket, text, n, MSG_DONTWAIT);
		break;
	case 7:
		riowrite(p->socket, text, n % 100, i % 100, MSG_DONTWAIT);
		break;
	default:
		polled(p->socket, POLLIN | POLLOUT, 0);
	}
	for (struct ibv_wc wc; !p->lost && ibv_poll_cq(p->id->recv_cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS;)
		post_receive(p, (uint32_t)wc.wr_id);
}

/* Peers that say and write anything: each call returns, and nothing is written but what the peer has granted. */
void case_wire_random(void)
{
	const uint32_t tables[] = { 0, 2, 3, 100, UINT32_MAX };
	struct peer p;

	for (unsigned seed = 1; seed <= 40; seed++) {
		unsigned state = seed;
		struct hello said = { .flags = (uint8_t)(seed % 4), .credits = (uint16_t)(seed % 3 ? 0 : rand_r(&state)),
				      .table.length = tables[seed % 5] };

		CHECK(connect_with(&p, &said, sizeof(said)));
		for (int i = 0; i < 200 && !p.lost; i++)
			step(&p, &state);
		for (size_t i = 0; i < sizeof(p.m->guard); i++)
			CHECK(!p.m->guard[i]);
		rdma_disconnect(p.id); /* else rclose waits for this thread to take what was sent */
		gone(&p);
	}
}
