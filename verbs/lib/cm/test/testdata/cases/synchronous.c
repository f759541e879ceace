/* synchronous.c - ids without an event channel of their own, and endpoints. */
#include <arpa/inet.h>
#include <string.h>

#include "cases.h"

void test_sync_active(void)
{
	struct rdma_cm_id *id = connected(NULL);

	CHECK(id->event && id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	CHECK(rdma_disconnect(id) == 0);
	CHECK(id->event->event == RDMA_CM_EVENT_DISCONNECTED);
	CHECK(rdma_disconnect(id) == 0); /* must not wait for a second event */
	finish(id);

	fake_refuse(URDMA_ABI_CM_RESOLVE_ROUTE, ENETUNREACH);
	CHECK(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0);
	REFUSES(rdma_resolve_route(id, 1), ENETUNREACH);
	finish(id);
	/* Every channel of a synchronous id was destroyed with the id. */
	CHECK(fake_count(URDMA_ABI_CM_CREATE_CHANNEL) == fake_count(URDMA_ABI_CM_DESTROY_CHANNEL));
	CHECK(fake_count(URDMA_ABI_CM_CREATE_ID) == fake_count(URDMA_ABI_CM_DESTROY_ID));
}

void test_sync_errors(void)
{
	struct sockaddr_in to = address("10.0.0.2", 7471);
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0);
	send_event(id, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH); /* read before the answer */
	REFUSES(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1), EHOSTUNREACH);
	CHECK(id->event->event == RDMA_CM_EVENT_ADDR_ERROR && !id->verbs);
	send_event(id, RDMA_CM_EVENT_REJECTED, 28);
	CHECK(rdma_resolve_route(id, 1) == 0); /* the answer to resolve_addr */
	REFUSES(rdma_resolve_route(id, 1), ECONNREFUSED);
	finish(id);
}

void test_endpoint(void)
{
	struct rdma_addrinfo *passive = info_for(NULL, RAI_PASSIVE);
	struct rdma_addrinfo *active = info_for("10.0.0.2", RAI_NUMERICHOST);
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *listener, *id, *client;

	CHECK(rdma_create_ep(&listener, passive, NULL, &attr) == 0);
	CHECK(rdma_listen(listener, 0) == 0);
	request_arrives(listener);
	CHECK(rdma_get_request(listener, &id) == 0);
	CHECK(id->qp && id->pd && id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(id->channel != listener->channel);
	CHECK(rdma_accept(id, NULL) == 0 && id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);

	active->ai_connect = strdup("ahead");
	active->ai_connect_len = 5;
	CHECK(rdma_create_ep(&client, active, NULL, &attr) == 0);
	CHECK(client->qp && rdma_connect(client, NULL) == 0);
	CHECK(fake_ids[handle_of(client)].param.private_data_len == 5);
	CHECK(fake_ids[handle_of(client)].param.retry_count == 7);
	rdma_destroy_ep(client);
	rdma_freeaddrinfo(passive);
	rdma_freeaddrinfo(active);
	CHECK(fake_count(URDMA_ABI_CM_CREATE_CHANNEL) == fake_count(URDMA_ABI_CM_DESTROY_CHANNEL));
}

void test_get_request_async(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening(channel, "0.0.0.0"), *id;

	REFUSES(rdma_get_request(listener, &id), EINVAL);
	finish(listener);
	rdma_destroy_event_channel(channel);
}
