/* stranger.c - datagrams from a queue pair that does not belong to an rsocket. */
#include <rdma/rdma_cma.h>
#include <stdlib.h>

#include "datagrams.h"

/* A queue pair of type UD that is no rsocket's, and knows a bound socket's queue pair. */
struct stranger {
	struct rdma_cm_id *id;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	uint8_t *memory;
	uint32_t qpn;
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
static void stranger_says(struct stranger *s, uint16_t largest)
{
	const uint16_t words[10] = { htons(0x7275), htons(999), 0, htons(1), 0, htons(10), 0xcb00, 0x7171, htons(largest),
		0xcb00 };
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

/* A sender that states a tiny largest datagram gets no reply with more parts than there is room for, and
 * does no harm. */
void case_stranger(void)
{
	static const uint16_t largest[] = { 0, 20, 21, 255, 256 };
	union place server, from, host;
	int a = datagram_socket(0), b = bound(address, &server);
	struct stranger s = stranger_to(&server);

	for (size_t i = 0; i < sizeof(largest) / sizeof(largest[0]); i++)
		stranger_says(&s, largest[i]);
	from = receive(b, 10);
	host = place(address, htons(999));
	CHECK(same(&from, &host));
	send_to(b, &from, longest());
	REFUSES(rrecv(b, got, 1, MSG_DONTWAIT), EAGAIN); /* its other datagrams were dropped */
	send_to(a, &server, 10);
	from = receive(b, 10);
	send_to(b, &from, 5000);
	receive(a, 5000);
	stranger_gone(&s);
	CHECK(rclose(a) == 0 && rclose(b) == 0);
}
