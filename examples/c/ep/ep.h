/* ep.h - definitions shared by server and client of the endpoint example. */
#ifndef EXAMPLES_EP_H
#define EXAMPLES_EP_H

#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "../pattern.h"

#define ROUNDS 1000u
#define LENGTH 4096u

/* Queue depths for both sides: at most one send and two receives are posted. */
static inline struct ibv_qp_init_attr endpoint_attr(void)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
}

static inline struct rdma_addrinfo *resolve(const char *host, const char *port, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *found;
	int error = rdma_getaddrinfo(host, port, &hints, &found);

	if (error && error != -1)
		fprintf(stderr, "%s: %s\n", host ? host : "*", gai_strerror(error));
	if (error)
		fail("rdma_getaddrinfo");
	return found;
}

/* A message to send and a message to receive, each with its memory region. */
struct buffers {
	uint8_t out[LENGTH], in[LENGTH];
	struct ibv_mr *out_mr, *in_mr;
};

static inline void buffers_register(struct buffers *b, struct rdma_cm_id *id)
{
	b->out_mr = rdma_reg_msgs(id, b->out, LENGTH);
	b->in_mr = rdma_reg_msgs(id, b->in, LENGTH);
	if (!b->out_mr || !b->in_mr)
		fail("rdma_reg_msgs");
}

static inline void buffers_release(struct buffers *b)
{
	if (rdma_dereg_mr(b->out_mr) || rdma_dereg_mr(b->in_mr))
		fail("rdma_dereg_mr");
}

static inline void post_receive(struct rdma_cm_id *id, struct buffers *b)
{
	if (rdma_post_recv(id, NULL, b->in, LENGTH, b->in_mr))
		fail("rdma_post_recv");
}

static inline void send_message(struct rdma_cm_id *id, struct buffers *b, uint32_t n)
{
	struct ibv_wc wc;

	pattern_fill(b->out, LENGTH, n);
	if (rdma_post_send(id, NULL, b->out, LENGTH, b->out_mr, 0))
		fail("rdma_post_send");
	if (rdma_get_send_comp(id, &wc) != 1)
		fail("rdma_get_send_comp");
	if (wc.status != IBV_WC_SUCCESS)
		fail(ibv_wc_status_str(wc.status));
}

static inline void receive_message(struct rdma_cm_id *id, struct buffers *b, uint32_t n)
{
	struct ibv_wc wc;

	if (rdma_get_recv_comp(id, &wc) != 1)
		fail("rdma_get_recv_comp");
	if (wc.status != IBV_WC_SUCCESS)
		fail(ibv_wc_status_str(wc.status));
	if (wc.byte_len != LENGTH)
		fail("a message of another length arrived");
	pattern_check(b->in, LENGTH, n);
}

#endif /* EXAMPLES_EP_H */
