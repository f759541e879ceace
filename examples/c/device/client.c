/* client.c - a device opened by name: the program makes all resources itself, and rdma_cm only connects the queue
 * pair. Sends messages, checks the answers. Usage: device-client host [port [device]] */
#include "device.h"

#define RESOLVE_MS 2000

static struct sockaddr_in look_up(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	struct sockaddr_in address;
	int error = getaddrinfo(host, port, &hints, &found);

	if (error)
		fail(gai_strerror(error));
	memcpy(&address, found->ai_addr, sizeof(address));
	freeaddrinfo(found);
	return address;
}

static struct rdma_cm_id *resolve(struct rdma_event_channel *events, struct sockaddr_in address)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP))
		fail("rdma_create_id");
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, RESOLVE_MS))
		fail("rdma_resolve_addr");
	await(events, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, RESOLVE_MS))
		fail("rdma_resolve_route");
	await(events, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

/* If rdma_cm has not made the queue pair, the program must take the last steps itself on InfiniBand
 * (CONNECT_RESPONSE). On iWARP the connection is complete at once. */
static void connect_queue_pair(struct device *d, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {
		.qp_num = d->qp->qp_num, .retry_count = 7, .rnr_retry_count = 7,
	};
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	check_device(d, id);
	move_to(d, id, IBV_QPS_INIT);
	post_receive(d);
	if (rdma_connect(id, &param))
		fail("rdma_connect");
	event = next_event(id->channel);
	type = event->event;
	rdma_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_ESTABLISHED)
		return;
	if (type != RDMA_CM_EVENT_CONNECT_RESPONSE)
		fail(rdma_event_str(type));
	move_to(d, id, IBV_QPS_RTR);
	move_to(d, id, IBV_QPS_RTS);
	if (rdma_establish(id))
		fail("rdma_establish");
}

static void exchange(struct device *d)
{
	for (uint32_t n = 0; n < ROUNDS; n++) {
		post_send(d, 2 * n);
		await_completions(d, 1, 1);
		pattern_check(d->data + LENGTH, LENGTH, 2 * n + 1);
		if (n + 1 < ROUNDS)
			post_receive(d);
	}
}

int main(int argc, char **argv)
{
	static struct device d;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;

	if (argc < 2) {
		fprintf(stderr, "usage: %s host [port [device]]\n", argv[0]);
		return 2;
	}
	device_make(&d, argc > 3 ? argv[3] : NULL);
	events = rdma_create_event_channel();
	if (!events)
		fail("rdma_create_event_channel");
	id = resolve(events, look_up(argv[1], argc > 2 ? argv[2] : "7473"));
	connect_queue_pair(&d, id);
	exchange(&d);
	rdma_disconnect(id);
	await(events, RDMA_CM_EVENT_DISCONNECTED);
	device_release(&d);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(events);
	printf("OK: %u messages of %u bytes each way\n", ROUNDS, LENGTH);
	return 0;
}
