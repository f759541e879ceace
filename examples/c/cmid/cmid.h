/* cmid.h - definitions shared by server and client of the cmid example: the server offers memory, the client writes
 * to it, reads it back and reports the end. */
#ifndef EXAMPLES_CMID_H
#define EXAMPLES_CMID_H

#include <arpa/inet.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>

#include "../pattern.h"

#define LENGTH (1u << 20)  /* bytes of memory that the server offers */

/* The address and key of the server's memory, sent as private data of the accept. */
struct remote_memory {
	uint64_t addr;
	uint32_t rkey;
	uint32_t length;
};

/* The objects of one side, made on the id's context. */
struct side {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *data;
};

/* Waits for an event of one type. The caller acknowledges it. */
static inline struct rdma_cm_event *next_event(struct side *s, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(s->events, &event))
		fail("rdma_get_cm_event");
	if (event->event == type && !event->status)
		return event;
	fprintf(stderr, "FAILED: got %s with status %d, expected %s\n",
		rdma_event_str(event->event), event->status, rdma_event_str(type));
	exit(1);
}

static inline void await(struct side *s, enum rdma_cm_event_type type)
{
	rdma_ack_cm_event(next_event(s, type));
}

static inline struct sockaddr_in look_up(const char *host, const char *port)
{
	struct addrinfo hints = {
		.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = host ? 0 : AI_PASSIVE,
	};
	struct addrinfo *found;
	struct sockaddr_in address;
	int error = getaddrinfo(host, port, &hints, &found);

	if (error)
		fail(gai_strerror(error));
	memcpy(&address, found->ai_addr, sizeof(address));
	freeaddrinfo(found);
	return address;
}

/* Once the id is bound to a device, id->verbs is the context of that device: from here on plain verbs. */
static inline void make_resources(struct side *s, int access)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	s->pd = ibv_alloc_pd(s->id->verbs);
	s->completions = ibv_create_comp_channel(s->id->verbs);
	s->data = malloc(LENGTH);
	if (!s->pd || !s->completions || !s->data)
		fail("domain, completion channel or memory");
	s->cq = ibv_create_cq(s->id->verbs, 8, NULL, s->completions, 0);
	s->mr = ibv_reg_mr(s->pd, s->data, LENGTH, access);
	if (!s->cq || !s->mr)
		fail("completion queue or memory region");
	attr.send_cq = attr.recv_cq = s->cq;
	if (rdma_create_qp(s->id, s->pd, &attr))
		fail("rdma_create_qp");
}

static inline void release_resources(struct side *s)
{
	rdma_destroy_qp(s->id);
	if (ibv_dereg_mr(s->mr) || ibv_destroy_cq(s->cq) ||
	    ibv_destroy_comp_channel(s->completions) || ibv_dealloc_pd(s->pd))
		fail("releasing resources");
	free(s->data);
	if (rdma_destroy_id(s->id))
		fail("rdma_destroy_id");
}

/* Sleeps until the next completion, and checks that it is a success of this opcode. */
static inline void await_completion(struct side *s, enum ibv_wc_opcode opcode)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	int got;

	while ((got = ibv_poll_cq(s->cq, 1, &wc)) == 0) {
		if (ibv_req_notify_cq(s->cq, 0))
			fail("ibv_req_notify_cq");
		/* A completion may have come before the request: poll again, then sleep. */
		if ((got = ibv_poll_cq(s->cq, 1, &wc)) != 0)
			break;
		if (ibv_get_cq_event(s->completions, &cq, &context))
			fail("ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	}
	if (got < 0)
		fail("ibv_poll_cq");
	if (wc.status != IBV_WC_SUCCESS)
		fail(ibv_wc_status_str(wc.status));
	if (wc.opcode != opcode)
		fail("a completion of another operation came");
}

#endif /* EXAMPLES_CMID_H */
