/* main.c - tests the librdmacm part with the fake urdmad; runs one named case. A failed check prints its
 * line and exits with 1. Without a name it lists the cases. */
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"

struct sockaddr_in address(const char *text, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	CHECK(inet_pton(AF_INET, text, &in.sin_addr) == 1);
	return in;
}

uint32_t handle_of(struct rdma_cm_id *id)
{
	return cm_id_of(id)->handle;
}

void send_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct urdma_abi_cm_event event = {
		.event = type, .id = handle_of(id), .status = status,
	};

	fake_send(&event);
}

void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	CHECK(rdma_get_cm_event(channel, &event) == 0);
	if (event->event != type)
		fprintf(stderr, "got %s, expected %s\n", rdma_event_str(event->event),
			rdma_event_str(type));
	CHECK(event->event == type);
	CHECK(rdma_ack_cm_event(event) == 0);
}

struct rdma_cm_id *resolved(struct rdma_event_channel *channel)
{
	struct sockaddr_in to = address("10.0.0.2", 7471);
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(channel, &id, (void *)&to, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000) == 0);
	if (channel)
		expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(rdma_resolve_route(id, 1000) == 0);
	if (channel)
		expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return id;
}

struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 4, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
}

struct rdma_cm_id *connected(struct rdma_event_channel *channel)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *id = resolved(channel);

	CHECK(rdma_create_qp(id, NULL, &attr) == 0);
	CHECK(rdma_connect(id, &param) == 0);
	if (channel)
		expect(channel, RDMA_CM_EVENT_ESTABLISHED);
	return id;
}

void finish(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	CHECK(rdma_destroy_id(id) == 0);
}

struct rdma_cm_id *listening(struct rdma_event_channel *channel, const char *text)
{
	struct sockaddr_in at = address(text, 7471);
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(channel, &id, (void *)0x55, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(id, (struct sockaddr *)&at) == 0);
	CHECK(rdma_listen(id, 3) == 0);
	return id;
}

uint32_t request_arrives(struct rdma_cm_id *listener)
{
	struct urdma_abi_cm_event event = {
		.event = RDMA_CM_EVENT_CONNECT_REQUEST,
		.id = handle_of(listener),
		.child = fake_new_child(handle_of(listener)),
		.local = { htonl(0x0a000001), htons(7471), 0 },
		.peer = { htonl(0x0a000002), htons(5), 0 },
		.param = { .responder_resources = 200, .initiator_depth = 2,
			   .private_data_len = 256, .private_data = { 9, 8 } },
	};

	fake_send(&event);
	return event.child;
}

struct rdma_addrinfo *info_for(const char *node, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res;

	CHECK(rdma_getaddrinfo(node, "7471", &hints, &res) == 0);
	return res;
}

#define ENTRY(name) { #name, test_##name },

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = { CASES(ENTRY) };

int main(int argc, char **argv)
{
	alarm(240);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc < 2)
			puts(cases[i].name);
		else if (!strcmp(argv[1], cases[i].name))
			return cases[i].run(), 0;
	}
	return argc < 2 ? 0 : 2;
}
