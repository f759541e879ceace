/* alone.c - calls without a urdmad, without a device, or without support. */

#include "cases.h"

void test_no_daemon(void)
{
	struct rdma_cm_id *id;
	struct rdma_addrinfo *res;
	int count = 7;

	fake_set_running(false);
	errno = 0;
	CHECK(!rdma_create_event_channel() && errno == ENODEV);
	REFUSES(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), ENODEV);
	CHECK(!rdma_get_devices(&count) && errno == ENODEV && count == 0);
	REFUSES(rdma_getaddrinfo("10.0.0.2", "1", NULL, &res), ENODEV);
}

/* A device that can't be shown under this transport does not hide others. */
void test_impossible_device(void)
{
	struct ibv_context **list;
	int count = 7;

	fake_set_devices(3);
	list = rdma_get_devices(&count);
	CHECK(list && count == 1 && list[0] && !list[1]);
	rdma_free_devices(list);
}

void test_refusals(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_srq_init_attr srq = { .attr.max_wr = 1 };
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *id = resolved(channel);
	struct sockaddr_in group = address("224.0.0.1", 1);

	REFUSES(rdma_join_multicast(id, (struct sockaddr *)&group, NULL), EINVAL);
	REFUSES(rdma_leave_multicast(id, (struct sockaddr *)&group), EADDRNOTAVAIL);
	REFUSES(rdma_create_srq(id, NULL, &srq), EOPNOTSUPP);
	attr.qp_type = IBV_QPT_UD;
	REFUSES(rdma_create_qp(id, NULL, &attr), EOPNOTSUPP);
	CHECK(!id->send_cq && !id->recv_cq && !id->send_cq_channel && !id->qp);
	finish(id);
	rdma_destroy_event_channel(channel);
}

/* Successful calls do not change errno. */
void test_errno(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel(), *other = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved(channel);
	struct rdma_cm_event *event;

	send_event(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	errno = EXDEV;
	CHECK(rdma_get_cm_event(channel, &event) == 0 && errno == EXDEV);
	CHECK(rdma_ack_cm_event(event) == 0 && errno == EXDEV);
	CHECK(rdma_migrate_id(id, other) == 0 && errno == EXDEV);
	CHECK(rdma_destroy_id(id) == 0 && errno == EXDEV);
	rdma_destroy_event_channel(channel);
	rdma_destroy_event_channel(other);
	CHECK(errno == EXDEV);
}

void test_strings(void)
{
	for (int i = -1; i < 18; i++)
		printf("%d %s\n", i, rdma_event_str((enum rdma_cm_event_type)i));
}
