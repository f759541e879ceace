/* server.c - a device opened by name: the program makes all resources itself, and rdma_cm only connects the queue
 * pair. Answers each message with the next. Usage: device-server [port [device]] */
#include "device.h"

static struct rdma_cm_id *listen_on(struct rdma_event_channel *events, const char *port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	struct rdma_cm_id *listener;

	if (rdma_create_id(events, &listener, NULL, RDMA_PS_TCP))
		fail("rdma_create_id");
	if (rdma_bind_addr(listener, (struct sockaddr *)&any))
		fail("rdma_bind_addr");
	if (rdma_listen(listener, 1))
		fail("rdma_listen");
	return listener;
}

static struct rdma_cm_id *take_request(struct rdma_event_channel *events)
{
	struct rdma_cm_event *event = next_event(events);
	struct rdma_cm_id *id = event->id;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		fail(rdma_event_str(event->event));
	rdma_ack_cm_event(event);
	return id;
}

static void accept_request(struct device *d, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .qp_num = d->qp->qp_num, .rnr_retry_count = 7 };

	check_device(d, id);
	move_to(d, id, IBV_QPS_INIT);
	post_receive(d);
	move_to(d, id, IBV_QPS_RTR);
	move_to(d, id, IBV_QPS_RTS);
	if (rdma_accept(id, &param))
		fail("rdma_accept");
	await(id->channel, RDMA_CM_EVENT_ESTABLISHED);
}

int main(int argc, char **argv)
{
	static struct device d;
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener, *id;

	device_make(&d, argc > 2 ? argv[2] : NULL);
	events = rdma_create_event_channel();
	if (!events)
		fail("rdma_create_event_channel");
	listener = listen_on(events, argc > 1 ? argv[1] : "7473");
	id = take_request(events);
	accept_request(&d, id);
	for (uint32_t n = 0; n < ROUNDS; n++) {
		await_completions(&d, 0, 1);
		pattern_check(d.data + LENGTH, LENGTH, 2 * n);
		post_receive(&d);
		post_send(&d, 2 * n + 1);
		await_completions(&d, 1, 0);
	}
	await(events, RDMA_CM_EVENT_DISCONNECTED);
	rdma_disconnect(id);
	device_release(&d);
	rdma_destroy_id(id);
	rdma_destroy_id(listener);
	rdma_destroy_event_channel(events);
	printf("OK: %u messages of %u bytes each way\n", ROUNDS, LENGTH);
	return 0;
}
