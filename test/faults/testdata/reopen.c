/* A program that outlives its urdmad: when its connection breaks it looks for the
 * device's end among the asynchronous events, gives everything back, opens and
 * connects again. It says "connected", and "device fatal" for that event.
 *
 *   reopen server|client ADDRESS PORT */
#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 4096 };

struct connection {
	struct rdma_cm_id *listener, *id;
	struct ibv_mr *mr;
	unsigned char *memory; /* what is received, then what is sent */
};

static int fatal(struct ibv_context *verbs)
{
	struct pollfd p = {.fd = verbs->async_fd, .events = POLLIN};
	struct ibv_async_event event;
	int found = 0;

	while (!found && poll(&p, 1, 1000) == 1 && !ibv_get_async_event(verbs, &event)) {
		found = event.event_type == IBV_EVENT_DEVICE_FATAL;
		ibv_ack_async_event(&event);
	}
	return found;
}

static int endpoint(int passive, const char *address, const char *port, struct rdma_cm_id **id)
{
	struct rdma_addrinfo hints = {.ai_flags = passive ? RAI_PASSIVE : 0, .ai_port_space = RDMA_PS_TCP};
	struct rdma_addrinfo *found;
	struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
					.sq_sig_all = 1, .qp_type = IBV_QPT_RC};
	int ret;

	if (rdma_getaddrinfo(address, port, &hints, &found))
		return -1;
	ret = rdma_create_ep(id, found, NULL, &attr);
	rdma_freeaddrinfo(found);
	return ret;
}

static int open_connection(struct connection *c, int passive, const char *address, const char *port)
{
	if (endpoint(passive, address, port, passive ? &c->listener : &c->id))
		return -1;
	if (passive && (rdma_listen(c->listener, 4) || rdma_get_request(c->listener, &c->id)))
		return -1;
	c->memory = calloc(2, SIZE);
	c->mr = rdma_reg_msgs(c->id, c->memory, 2 * SIZE);
	if (!c->mr || rdma_post_recv(c->id, NULL, c->memory, SIZE, c->mr))
		return -1;
	if (passive ? rdma_accept(c->id, NULL) : rdma_connect(c->id, NULL))
		return -1;
	puts("connected");
	return 0;
}

/* The client sends and waits for the same bytes, the server answers. */
static int send_block(struct connection *c)
{
	struct ibv_wc wc;

	return rdma_post_send(c->id, NULL, c->memory + SIZE, SIZE, c->mr, 0) || rdma_get_send_comp(c->id, &wc) != 1 ||
	       wc.status != IBV_WC_SUCCESS;
}

static int receive_block(struct connection *c)
{
	struct ibv_wc wc;

	return rdma_get_recv_comp(c->id, &wc) != 1 || wc.status != IBV_WC_SUCCESS || wc.byte_len != SIZE;
}

static int again(struct connection *c) { return rdma_post_recv(c->id, NULL, c->memory, SIZE, c->mr); }

static void work(struct connection *c, int passive)
{
	for (unsigned round = 0;; round++) {
		if (passive) {
			if (receive_block(c))
				return;
			memcpy(c->memory + SIZE, c->memory, SIZE);
			if (again(c) || send_block(c))
				return;
			continue;
		}
		memset(c->memory + SIZE, (int)round * 7 + 1, SIZE);
		if (send_block(c) || receive_block(c))
			return;
		if (memcmp(c->memory, c->memory + SIZE, SIZE)) {
			puts("wrong bytes");
			exit(1);
		}
		if (again(c))
			return;
		printf("round %u\n", round);
		usleep(5000);
	}
}

/* While the library still has an id its device is open. */
static void look_and_close(struct connection *c)
{
	struct rdma_cm_id *known = c->id ? c->id : c->listener;

	if (known && known->verbs && fatal(known->verbs))
		puts("device fatal");
	if (c->mr)
		rdma_dereg_mr(c->mr);
	if (c->id)
		rdma_destroy_ep(c->id);
	if (c->listener)
		rdma_destroy_ep(c->listener);
	free(c->memory);
}

int main(int argc, char **argv)
{
	int passive = argc == 4 && !strcmp(argv[1], "server");

	if (argc != 4)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (;;) {
		struct connection c = {0};

		if (!open_connection(&c, passive, argv[2], argv[3]))
			work(&c, passive);
		look_and_close(&c);
		usleep(20000);
	}
}
