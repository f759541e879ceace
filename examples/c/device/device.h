/* device.h - definitions shared by server and client of the device example: a context opened by name, with all
 * resources made on it, including the queue pair. rdma_cm connects that queue pair and knows only its number. */
#ifndef EXAMPLES_DEVICE_H
#define EXAMPLES_DEVICE_H

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>

#include "../pattern.h"

#define ROUNDS 1000u
#define LENGTH 2048u

struct device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t data[2 * LENGTH];  /* first half: to send; second half: received */
};

/* Opens the device with this name, or the first device. */
static inline struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	if (!list)
		fail("ibv_get_device_list");
	for (int i = 0; list[i] && !context; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (!context)
		fail(name ? name : "no device");
	return context;
}

static inline void device_make(struct device *d, const char *name)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	d->context = open_device(name);
	d->pd = ibv_alloc_pd(d->context);
	d->cq = ibv_create_cq(d->context, 4, NULL, NULL, 0);
	if (!d->pd || !d->cq)
		fail("protection domain or completion queue");
	d->mr = ibv_reg_mr(d->pd, d->data, sizeof(d->data), IBV_ACCESS_LOCAL_WRITE);
	if (!d->mr)
		fail("ibv_reg_mr");
	attr.send_cq = attr.recv_cq = d->cq;
	d->qp = ibv_create_qp(d->pd, &attr);
	if (!d->qp)
		fail("ibv_create_qp");
}

static inline void device_release(struct device *d)
{
	if (ibv_destroy_qp(d->qp) || ibv_dereg_mr(d->mr) || ibv_destroy_cq(d->cq) ||
	    ibv_dealloc_pd(d->pd) || ibv_close_device(d->context))
		fail("releasing resources");
}

/* The address may belong to a device other than the open one. */
static inline void check_device(const struct device *d, const struct rdma_cm_id *id)
{
	if (!strcmp(ibv_get_device_name(id->verbs->device),
		    ibv_get_device_name(d->context->device)))
		return;
	fprintf(stderr, "FAILED: the connection is on %s, the resources are on %s: name it\n",
		ibv_get_device_name(id->verbs->device), ibv_get_device_name(d->context->device));
	exit(1);
}

/* Moves the queue pair to the state with the attributes from rdma_cm. On iWARP this does nothing after INIT. */
static inline void move_to(struct device *d, struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(id, &attr, &mask))
		fail("rdma_init_qp_attr");
	if (mask && (errno = ibv_modify_qp(d->qp, &attr, mask)))
		fail("ibv_modify_qp");
}

static inline void post_receive(struct device *d)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(d->data + LENGTH), .length = LENGTH, .lkey = d->mr->lkey,
	};
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if ((errno = ibv_post_recv(d->qp, &wr, &bad)))
		fail("ibv_post_recv");
}

static inline void post_send(struct device *d, uint32_t n)
{
	struct ibv_sge sge = { .addr = (uintptr_t)d->data, .length = LENGTH, .lkey = d->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	pattern_fill(d->data, LENGTH, n);
	if ((errno = ibv_post_send(d->qp, &wr, &bad)))
		fail("ibv_post_send");
}

/* Polls until the given numbers of sends and receives have completed, in any order. */
static inline void await_completions(struct device *d, int sends, int receives)
{
	struct ibv_wc wc;
	int got;

	while (sends || receives) {
		got = ibv_poll_cq(d->cq, 1, &wc);
		if (got < 0)
			fail("ibv_poll_cq");
		if (!got)
			continue;
		errno = 0;
		if (wc.status != IBV_WC_SUCCESS)
			fail(ibv_wc_status_str(wc.status));
		if (wc.opcode & IBV_WC_RECV)
			receives--;
		else
			sends--;
	}
}

static inline struct rdma_cm_event *next_event(struct rdma_event_channel *events)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(events, &event))
		fail("rdma_get_cm_event");
	if (!event->status)
		return event;
	fprintf(stderr, "FAILED: %s with status %d\n", rdma_event_str(event->event), event->status);
	exit(1);
}

static inline void await(struct rdma_event_channel *events, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next_event(events);

	if (event->event != type)
		fail(rdma_event_str(event->event));
	rdma_ack_cm_event(event);
}

#endif /* EXAMPLES_DEVICE_H */
