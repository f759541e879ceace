/*
 * client.c - ids and an event channel: writes the server's memory by RDMA,
 * reads it back and compares, then sends an empty message.
 * Usage: cmid-client host [port]
 */
#include "cmid.h"

#define RESOLVE_MS 2000

static void resolve(struct side *s, const char *host, const char *port)
{
	struct sockaddr_in address = look_up(host, port);

	s->events = rdma_create_event_channel();
	if (!s->events)
		fail("rdma_create_event_channel");
	if (rdma_create_id(s->events, &s->id, NULL, RDMA_PS_TCP))
		fail("rdma_create_id");
	if (rdma_resolve_addr(s->id, NULL, (struct sockaddr *)&address, RESOLVE_MS))
		fail("rdma_resolve_addr");
	await(s, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(s->id, RESOLVE_MS))
		fail("rdma_resolve_route");
	await(s, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static struct remote_memory connect_and_learn(struct side *s)
{
	struct rdma_conn_param param = { .initiator_depth = 1, .retry_count = 7 };
	struct rdma_cm_event *event;
	struct remote_memory remote;

	if (rdma_connect(s->id, &param))
		fail("rdma_connect");
	event = next_event(s, RDMA_CM_EVENT_ESTABLISHED);
	if (event->param.conn.private_data_len < sizeof(remote))
		fail("the server named no memory");
	memcpy(&remote, event->param.conn.private_data, sizeof(remote));
	rdma_ack_cm_event(event);
	if (remote.length != LENGTH)
		fail("the server named memory of another length");
	return remote;
}

static void transfer(struct side *s, enum ibv_wr_opcode opcode, const struct remote_memory *remote)
{
	struct ibv_sge sge = { .addr = (uintptr_t)s->data, .length = LENGTH, .lkey = s->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = opcode == IBV_WR_SEND ? 0 : 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = remote->addr, .rkey = remote->rkey },
	};
	struct ibv_send_wr *bad;

	if (ibv_post_send(s->id->qp, &wr, &bad))
		fail("ibv_post_send");
}

int main(int argc, char **argv)
{
	struct side s = { 0 };
	struct remote_memory remote;

	if (argc < 2) {
		fprintf(stderr, "usage: %s host [port]\n", argv[0]);
		return 2;
	}
	resolve(&s, argv[1], argc > 2 ? argv[2] : "7472");
	make_resources(&s, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	remote = connect_and_learn(&s);

	pattern_fill(s.data, LENGTH, 1);
	transfer(&s, IBV_WR_RDMA_WRITE, &remote);
	await_completion(&s, IBV_WC_RDMA_WRITE);
	memset(s.data, 0, LENGTH);
	transfer(&s, IBV_WR_RDMA_READ, &remote);
	await_completion(&s, IBV_WC_RDMA_READ);
	pattern_check(s.data, LENGTH, 1);
	transfer(&s, IBV_WR_SEND, &remote);
	await_completion(&s, IBV_WC_SEND);

	rdma_disconnect(s.id);
	await(&s, RDMA_CM_EVENT_DISCONNECTED);
	release_resources(&s);
	rdma_destroy_event_channel(s.events);
	printf("OK: wrote %u bytes to the server and read them back\n", LENGTH);
	return 0;
}
