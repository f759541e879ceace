/*
 * server.c - ids and an event channel: listens on a port, offers memory to the
 * client in private data and checks what the client wrote there.
 * Usage: cmid-server [port]
 */
#include "cmid.h"

static struct rdma_cm_id *listen_on(struct side *s, const char *port)
{
	struct sockaddr_in address = look_up(NULL, port);
	struct rdma_cm_id *listener;

	s->events = rdma_create_event_channel();
	if (!s->events)
		fail("rdma_create_event_channel");
	if (rdma_create_id(s->events, &listener, NULL, RDMA_PS_TCP))
		fail("rdma_create_id");
	if (rdma_bind_addr(listener, (struct sockaddr *)&address))
		fail("rdma_bind_addr");
	if (rdma_listen(listener, 1))
		fail("rdma_listen");
	return listener;
}

static void accept_with_memory(struct side *s)
{
	struct remote_memory remote = { .addr = (uintptr_t)s->data, .rkey = s->mr->rkey, .length = LENGTH };
	struct rdma_conn_param param = {
		.private_data = &remote,
		.private_data_len = sizeof(remote),
		.responder_resources = 1,  /* the client makes RDMA Reads */
	};
	struct ibv_sge nothing = { 0 };
	struct ibv_recv_wr wr = { .sg_list = &nothing, .num_sge = 0 }, *bad;

	/* The client's last message is empty, so the receive needs no memory. */
	if (ibv_post_recv(s->id->qp, &wr, &bad))
		fail("ibv_post_recv");
	if (rdma_accept(s->id, &param))
		fail("rdma_accept");
	await(s, RDMA_CM_EVENT_ESTABLISHED);
}

int main(int argc, char **argv)
{
	struct side s = { 0 };
	struct rdma_cm_id *listener = listen_on(&s, argc > 1 ? argv[1] : "7472");
	struct rdma_cm_event *event = next_event(&s, RDMA_CM_EVENT_CONNECT_REQUEST);

	s.id = event->id;
	rdma_ack_cm_event(event);
	make_resources(&s, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
	accept_with_memory(&s);
	await_completion(&s, IBV_WC_RECV);
	pattern_check(s.data, LENGTH, 1);
	await(&s, RDMA_CM_EVENT_DISCONNECTED);
	rdma_disconnect(s.id);
	release_resources(&s);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(s.events);
	printf("OK: the client wrote %u bytes here\n", LENGTH);
	return 0;
}
