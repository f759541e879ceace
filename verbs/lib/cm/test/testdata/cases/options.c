/* options.c - options, and the attributes of queue pairs. */

#include "cases.h"

void test_options(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved(channel), *fresh;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct ibv_ece ece = { .vendor_id = 1 };
	struct ibv_path_data path = { .flags = IBV_PATH_FLAG_GMP };
	uint8_t tos = 3;
	int yes = 1, mask;

	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1) == 0);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &tos, 1) == 0);
	CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)) == 0);
	REFUSES(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &yes, sizeof(yes)), EINVAL);
	REFUSES(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &tos, 1), EINVAL);
	REFUSES(rdma_set_option(id, RDMA_OPTION_ID, 9, &tos, 1), ENOSYS);
	REFUSES(rdma_set_option(id, 9, 0, &tos, 1), ENOSYS);
	REFUSES(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &tos, 1), EINVAL);
	REFUSES(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)), EINVAL);
	path.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	CHECK(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)) == 0);
	expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);

	CHECK(rdma_init_qp_attr(id, &attr, &mask) == 0);
	CHECK(mask == (IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT) && attr.port_num == 1);
	attr.qp_state = IBV_QPS_RTS;
	CHECK(rdma_init_qp_attr(id, &attr, &mask) == 0 && mask == 0 && attr.timeout == 3 && attr.retry_cnt == 7);
	attr.qp_state = IBV_QPS_SQD;
	REFUSES(rdma_init_qp_attr(id, &attr, &mask), EINVAL);

	CHECK(rdma_set_local_ece(id, &ece) == 0);
	CHECK(rdma_get_remote_ece(id, &ece) == 0 && ece.vendor_id == 0);
	REFUSES(rdma_set_local_ece(id, &ece), EINVAL);
	CHECK(rdma_notify(id, IBV_EVENT_COMM_EST) == 0);
	CHECK(rdma_create_id(channel, &fresh, NULL, RDMA_PS_TCP) == 0);
	REFUSES(rdma_notify(fresh, IBV_EVENT_COMM_EST), EINVAL);
	REFUSES(rdma_disconnect(fresh), EINVAL);
	finish(fresh);
	finish(id);
	rdma_destroy_event_channel(channel);
}
