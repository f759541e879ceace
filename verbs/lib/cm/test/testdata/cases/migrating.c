/* migrating.c - ids that are moved to another event channel, with their events. */
#include <fcntl.h>
#include <poll.h>

#include "cases.h"

/* An event of a synchronous child that urdmad sent before the migration. */
void test_migrated_event(void)
{
	struct rdma_addrinfo *passive = info_for(NULL, RAI_PASSIVE);
	struct urdma_abi_cm_event early = { .event = RDMA_CM_EVENT_DISCONNECTED };
	struct rdma_cm_id *listener, *id, *second;
	uint32_t channel;

	CHECK(rdma_create_ep(&listener, passive, NULL, NULL) == 0);
	CHECK(rdma_listen(listener, 0) == 0);
	channel = fake_ids[handle_of(listener)].channel;
	early.id = request_arrives(listener);
	fake_send_on(channel, &early);
	CHECK(rdma_get_request(listener, &id) == 0);
	request_arrives(listener);
	CHECK(rdma_get_request(listener, &second) == 0); /* passes the early event on */
	expect(id->channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_ep(second);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	rdma_freeaddrinfo(passive);
}

void test_migrate(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = connected(NULL);

	send_event(id, RDMA_CM_EVENT_DISCONNECTED, 0); /* unread during the move */
	CHECK(rdma_migrate_id(id, channel) == 0);
	CHECK(id->channel == channel && !id->event);
	expect(channel, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(rdma_migrate_id(id, NULL) == 0);
	CHECK(id->channel != channel);
	CHECK(rdma_disconnect(id) == 0);
	finish(id);
	rdma_destroy_event_channel(channel);
}

/* Returns whether the channel's socket is readable, as event loops check. */
static bool readable(struct rdma_event_channel *channel)
{
	struct pollfd poller = { .fd = channel->fd, .events = POLLIN };

	return poll(&poller, 1, 0) == 1;
}

/* An id that is not synchronous takes its unread events along, in order, and leaves those of other ids;
 * both sockets are readable. A request of a listener that was moved creates an id on the new channel. */
void test_migrate_pending(void)
{
	struct rdma_event_channel *a = rdma_create_event_channel(), *b = rdma_create_event_channel();
	struct rdma_cm_id *id = connected(a), *other = connected(a), *listener = listening(a, "0.0.0.0");
	struct rdma_cm_event *event;
	uint32_t child;

	send_event(other, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	send_event(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	child = request_arrives(listener);
	send_event(id, RDMA_CM_EVENT_DISCONNECTED, 0);
	CHECK(rdma_migrate_id(id, b) == 0 && id->channel == b);
	CHECK(readable(a) && readable(b));
	expect(b, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(readable(b));
	expect(b, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(!readable(b));
	expect(a, RDMA_CM_EVENT_ADDR_CHANGE);
	CHECK(readable(a));
	CHECK(rdma_migrate_id(listener, b) == 0);
	CHECK(!readable(a) && readable(b));
	CHECK(rdma_get_cm_event(b, &event) == 0 && event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	CHECK(event->id->channel == b && fake_ids[child].channel == fake_ids[handle_of(listener)].channel);
	send_event(event->id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	CHECK(rdma_migrate_id(event->id, b) == 0); /* to its own channel */
	id = event->id;
	CHECK(rdma_ack_cm_event(event) == 0);
	expect(b, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	CHECK(!readable(a) && !readable(b));
	REFUSES((fcntl(b->fd, F_SETFL, O_NONBLOCK), rdma_get_cm_event(b, &event)), EAGAIN);
	finish(id);
	rdma_destroy_id(listener);
}
