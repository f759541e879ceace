/*
 * server.c - the shortest way to a connection: rdma_getaddrinfo,
 * rdma_create_ep and the calls of rdma_verbs.h. Answers each message with the
 * next one. Usage: ep-server [port]
 */
#include "ep.h"

static void serve(struct rdma_cm_id *id)
{
	static struct buffers b;

	buffers_register(&b, id);
	/* The client may send as soon as it is accepted: post a receive first. */
	post_receive(id, &b);
	if (rdma_accept(id, NULL))
		fail("rdma_accept");
	for (uint32_t n = 0; n < ROUNDS; n++) {
		receive_message(id, &b, 2 * n);
		post_receive(id, &b);
		send_message(id, &b, 2 * n + 1);
	}
	rdma_disconnect(id);
	buffers_release(&b);
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo *address = resolve(NULL, argc > 1 ? argv[1] : "7471", RAI_PASSIVE);
	struct ibv_qp_init_attr attr = endpoint_attr();
	struct rdma_cm_id *listener, *id;

	if (rdma_create_ep(&listener, address, NULL, &attr))
		fail("rdma_create_ep");
	rdma_freeaddrinfo(address);
	if (rdma_listen(listener, 1))
		fail("rdma_listen");
	if (rdma_get_request(listener, &id))
		fail("rdma_get_request");
	serve(id);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	printf("OK: %u messages of %u bytes each way\n", ROUNDS, LENGTH);
	return 0;
}
