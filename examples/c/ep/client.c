/*
 * client.c - the shortest way to a connection: rdma_getaddrinfo,
 * rdma_create_ep and the calls of rdma_verbs.h. Sends messages and checks the
 * answers. Usage: ep-client host [port]
 */
#include "ep.h"

static void exchange(struct rdma_cm_id *id)
{
	static struct buffers b;

	buffers_register(&b, id);
	if (rdma_connect(id, NULL))
		fail("rdma_connect");
	for (uint32_t n = 0; n < ROUNDS; n++) {
		post_receive(id, &b);
		send_message(id, &b, 2 * n);
		receive_message(id, &b, 2 * n + 1);
	}
	rdma_disconnect(id);
	buffers_release(&b);
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr attr = endpoint_attr();
	struct rdma_addrinfo *address;
	struct rdma_cm_id *id;

	if (argc < 2) {
		fprintf(stderr, "usage: %s host [port]\n", argv[0]);
		return 2;
	}
	address = resolve(argv[1], argc > 2 ? argv[2] : "7471", 0);
	if (rdma_create_ep(&id, address, NULL, &attr))
		fail("rdma_create_ep");
	rdma_freeaddrinfo(address);
	exchange(id);
	rdma_destroy_ep(id);
	printf("OK: %u messages of %u bytes each way\n", ROUNDS, LENGTH);
	return 0;
}
