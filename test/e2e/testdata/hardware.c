/* hardware.c - prints what is answered to requests that fail; arguments: the address of this host's port, that of a
 * host that is not there, and one to which no route leads. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTENS 7555
#define NOBODY 7556

static struct sockaddr_in at(const char *host, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

	inet_pton(AF_INET, host, &a.sin_addr);
	return a;
}

static void say(const char *what, int error)
{
	printf("%s: %s\n", what, error ? strerrorname_np(error) : "OK");
}

static void registers(struct ibv_pd *pd, const char *what, void *addr)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, addr, 0, IBV_ACCESS_LOCAL_WRITE);

	say(what, mr ? 0 : errno);
	if (mr)
		ibv_dereg_mr(mr);
}

/* Brings a queue pair to RTR towards a host, and sends if that succeeds. */
static void towards(struct ibv_context *context, struct ibv_pd *pd, const char *what, const char *host)
{
	struct ibv_cq *cq = ibv_create_cq(context, 2, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024, .dest_qp_num = 5,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 12, .ah_attr = { .port_num = 1 } };
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	struct sockaddr_in a = at(host, 0);
	struct ibv_port_attr port;
	struct ibv_wc wc;
	int status;

	ibv_query_port(context, 1, &port);
	ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTR;
	if (port.link_layer == IBV_LINK_LAYER_INFINIBAND) {
		attr.ah_attr.dlid = ntohl(a.sin_addr.s_addr) & 0xffff;
	} else {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.dgid.raw[10] = attr.ah_attr.grh.dgid.raw[11] = 0xff;
		memcpy(attr.ah_attr.grh.dgid.raw + 12, &a.sin_addr, 4);
	}
	status = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	say(what, status);
	if (!status) {
		attr.qp_state = IBV_QPS_RTS;
		attr.timeout = 10;
		attr.retry_cnt = 1;
		attr.max_rd_atomic = 1;
		ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
		ibv_post_send(qp, &wr, &bad);
		while (!ibv_poll_cq(cq, 1, &wc))
			;
		printf("a send then: %d\n", wc.status);
	}
	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
}

static struct rdma_cm_event *next(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(channel, &event))
		exit(1);
	return event;
}

/* Connects to a port of a host, and prints the event that ends the attempt. */
static void connects(const char *what, const char *host, int port, struct rdma_event_channel *listens)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = { .retry_count = 1 };
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct sockaddr_in a = at(host, port);
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;
	int status;

	rdma_create_id(channel, &id, NULL, RDMA_PS_TCP);
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&a, 2000)) {
		printf("%s: rdma_resolve_addr %s\n", what, strerrorname_np(errno));
		return;
	}
	for (;;) {
		event = next(channel);
		type = event->event;
		status = event->status;
		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_ADDR_RESOLVED) {
			rdma_resolve_route(id, 2000);
		} else if (type == RDMA_CM_EVENT_ROUTE_RESOLVED) {
			if (rdma_create_qp(id, NULL, &init) || rdma_connect(id, &param))
				exit(1);
			if (listens) {
				event = next(listens);
				rdma_reject(event->id, NULL, 0);
				rdma_ack_cm_event(event);
			}
		} else {
			printf("%s: %s %d\n", what, rdma_event_str(type), status);
			return;
		}
	}
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = ibv_open_device(devices[0]);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	char *page = aligned_alloc(4096, 4096);
	struct sockaddr_in a;
	struct rdma_cm_id *id;

	if (argc != 4 || !pd || !page)
		return 1;
	registers(pd, "an empty region at the start of a page", page);
	registers(pd, "an empty region within a page", page + 8);
	registers(pd, "an empty region at NULL", NULL);
	towards(context, pd, "RTR towards a host that is not there", argv[2]);
	towards(context, pd, "RTR towards an address without a route", argv[3]);
	a = at(argv[1], LISTENS);
	rdma_create_id(channel, &id, NULL, RDMA_PS_TCP);
	if (rdma_bind_addr(id, (struct sockaddr *)&a) || rdma_listen(id, 1))
		return 1;
	connects("the program rejects", argv[1], LISTENS, channel);
	connects("nobody listens", argv[1], NOBODY, NULL);
	connects("a host that is not there", argv[2], NOBODY, NULL);
	connects("an address without a route", argv[3], NOBODY, NULL);
	return 0;
}
