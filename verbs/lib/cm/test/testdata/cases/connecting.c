/* connecting.c - ids that connect, and the states of their queue pairs. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

void test_active(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = {
		.private_data = "hello", .private_data_len = 5,
		.responder_resources = RDMA_MAX_RESP_RES, .initiator_depth = 3,
	};
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *id = resolved(channel);

	CHECK(id->verbs && id->pd && id->port_num == 1);
	CHECK(id->route.addr.addr.ibaddr.sgid.raw[15] == 0x42);
	CHECK(((struct sockaddr_in *)rdma_get_local_addr(id))->sin_addr.s_addr == htonl(0x0a000001));
	CHECK(rdma_get_src_port(id) == htons(40000) && rdma_get_dst_port(id) == htons(7471));
	REFUSES(rdma_connect(id, NULL), EINVAL); /* neither a queue pair nor parameters */
	CHECK(rdma_create_qp(id, NULL, &attr) == 0);
	CHECK(id->qp->state == IBV_QPS_INIT && id->send_cq->cqe == 4 && id->recv_cq->cqe == 8);
	CHECK(id->send_cq->cq_context == id && id->recv_cq->channel == id->recv_cq_channel);
	REFUSES(rdma_create_qp(id, NULL, &attr), EINVAL);
	param.initiator_depth = 17;
	REFUSES(rdma_connect(id, &param), EINVAL);
	param.initiator_depth = 3;
	CHECK(rdma_connect(id, &param) == 0);
	expect(channel, RDMA_CM_EVENT_ESTABLISHED);
	CHECK(id->qp->state == IBV_QPS_RTS);
	CHECK(fake_ids[handle_of(id)].param.responder_resources == 16);
	CHECK(fake_ids[handle_of(id)].param.initiator_depth == 3);
	CHECK(fake_ids[handle_of(id)].param.qp == 77 && fake_ids[handle_of(id)].param.qp_num == 1077);
	CHECK(fake_ids[handle_of(id)].param.private_data_len == 5);
	CHECK(!memcmp(fake_ids[handle_of(id)].param.private_data, "hello", 5));
	REFUSES(rdma_establish(id), EINVAL);
	CHECK(rdma_disconnect(id) == 0);
	expect(channel, RDMA_CM_EVENT_DISCONNECTED);
	CHECK(id->qp->state == IBV_QPS_ERR);
	finish(id);
	rdma_destroy_event_channel(channel);
}

/* As rping does: the queue pair is destroyed first, and not by rdma_destroy_qp. */
void test_event_after_destroy_qp(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = connected(channel);

	CHECK(rdma_disconnect(id) == 0);
	CHECK(ibv_destroy_qp(id->qp) == 0);
	expect(channel, RDMA_CM_EVENT_DISCONNECTED);
	id->qp = NULL;
	rdma_destroy_qp(id); /* destroys its completion queues */
	finish(id);
	rdma_destroy_event_channel(channel);
}

void test_external_qp(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = { .qp_num = 42 }; /* not the number of a queue pair of ours */
	struct ibv_qp_attr attr_qp = { 0 };
	int mask;
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *id = resolved(channel);
	struct ibv_qp *qp = ibv_create_qp(id->pd, &attr);

	CHECK(rdma_connect(id, &param) == 0);
	CHECK(fake_ids[handle_of(id)].param.qp == 0 && fake_ids[handle_of(id)].param.qp_num == 42);
	expect(channel, RDMA_CM_EVENT_ESTABLISHED); /* iWARP has no CONNECT_RESPONSE */
	CHECK(qp->state == IBV_QPS_RESET);
	finish(id);

	fake_set_transport(IBV_TRANSPORT_IB);
	id = resolved(channel);
	param.qp_num = qp->qp_num;
	CHECK(rdma_connect(id, &param) == 0);
	CHECK(fake_ids[handle_of(id)].param.qp == 77 && fake_ids[handle_of(id)].param.qp_num == 1077);
	expect(channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	CHECK(qp->state == IBV_QPS_RTS);
	attr_qp.qp_state = IBV_QPS_RTR;
	CHECK(rdma_init_qp_attr(id, &attr_qp, &mask) == 0);
	CHECK(mask == (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC |
		       IBV_QP_MIN_RNR_TIMER));
	CHECK(attr_qp.path_mtu == IBV_MTU_1024 && attr_qp.ah_attr.is_global && attr_qp.ah_attr.grh.dgid.raw[15] == 2);
	CHECK(attr_qp.ah_attr.grh.dgid.raw[10] == 0xff && attr_qp.ah_attr.grh.dgid.raw[12] == 10);
	CHECK(rdma_establish(id) == 0);
	CHECK(fake_count(URDMA_ABI_CM_ACCEPT) == 0); /* it was established already */
	CHECK(rdma_disconnect(id) == 0 && qp->state == IBV_QPS_ERR);
	expect(channel, RDMA_CM_EVENT_DISCONNECTED);
	ibv_destroy_qp(qp);
	send_event(id, RDMA_CM_EVENT_DISCONNECTED, 0); /* the queue pair no longer exists: no harm */
	expect(channel, RDMA_CM_EVENT_DISCONNECTED);
	finish(id);
	rdma_destroy_event_channel(channel);
}

void test_reject(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening(channel, "10.0.0.1");
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CHECK(listener->verbs && listener->pd);
	request_arrives(listener);
	CHECK(rdma_get_cm_event(channel, &event) == 0);
	id = event->id;
	CHECK(rdma_ack_cm_event(event) == 0);
	CHECK(rdma_reject(id, "no", 2) == 0);
	CHECK(fake_ids[handle_of(id)].param.private_data_len == 2);
	finish(id);
	finish(listener);
	rdma_destroy_event_channel(channel);
}

/* The reason of a rejection: InfiniBand's if the device has such reasons, else an errno value. */
void test_rejected(void)
{
	static const struct { enum ibv_transport_type transport; int said, status; } rows[] = {
		{ IBV_TRANSPORT_IB, 8, 8 }, { IBV_TRANSPORT_IB, 28, 28 }, { IBV_TRANSPORT_IWARP, 8, -ECONNREFUSED },
		{ IBV_TRANSPORT_IWARP, 28, -ECONNREFUSED }, { IBV_TRANSPORT_IB, -ETIMEDOUT, -ETIMEDOUT },
	};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved(channel);
	struct rdma_cm_event *event;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		fake_set_transport(rows[i].transport);
		send_event(id, i % 2 ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_UNREACHABLE, rows[i].said);
		CHECK(rdma_get_cm_event(channel, &event) == 0);
		CHECK(event->status == rows[i].status);
		CHECK(rdma_ack_cm_event(event) == 0);
	}
	finish(id);
	rdma_destroy_event_channel(channel);
}

/* Private data is refused if InfiniBand's messages have no room for it; iWARP has room. */
void test_private_room(void)
{
	static const uint8_t data[255];
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = { .private_data = data };
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *id, *listener, *child;
	struct rdma_cm_event *event;

	for (int ib = 0; ib < 2; ib++) {
		fake_set_transport(ib ? IBV_TRANSPORT_IB : IBV_TRANSPORT_IWARP);
		id = resolved(channel);
		CHECK(rdma_create_qp(id, NULL, &attr) == 0);
		param.private_data_len = 57;
		if (ib)
			REFUSES(rdma_connect(id, &param), EINVAL);
		param.private_data_len = ib ? 56 : 255;
		CHECK(rdma_connect(id, &param) == 0);
		expect(channel, RDMA_CM_EVENT_ESTABLISHED);
		CHECK(fake_ids[handle_of(id)].param.private_data_len == param.private_data_len);
		finish(id);

		listener = listening(channel, "10.0.0.1");
		for (int accepts = 0; accepts < 2; accepts++) {
			request_arrives(listener);
			CHECK(rdma_get_cm_event(channel, &event) == 0);
			child = event->id;
			CHECK(rdma_ack_cm_event(event) == 0);
			if (accepts) {
				CHECK(rdma_create_qp(child, NULL, &attr) == 0);
				param.private_data_len = 197;
				if (ib)
					REFUSES(rdma_accept(child, &param), EINVAL);
				param.private_data_len = ib ? 196 : 255;
				CHECK(rdma_accept(child, &param) == 0);
				expect(channel, RDMA_CM_EVENT_ESTABLISHED);
			} else {
				if (ib)
					REFUSES(rdma_reject(child, data, 149), EINVAL);
				CHECK(rdma_reject(child, data, ib ? 148 : 255) == 0);
			}
			finish(child);
		}
		finish(listener);
	}
	rdma_destroy_event_channel(channel);
}

/* Checks that the next event has length zeros as private data; 0: none. */
static struct rdma_cm_id *zeros(struct rdma_event_channel *channel, enum rdma_cm_event_type type, uint8_t length)
{
	static const uint8_t none[255];
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CHECK(rdma_get_cm_event(channel, &event) == 0 && event->event == type);
	CHECK(event->param.conn.private_data_len == length && !event->param.conn.private_data == !length);
	CHECK(!length || !memcmp(event->param.conn.private_data, none, length));
	id = event->id;
	CHECK(rdma_ack_cm_event(event) == 0);
	return id;
}

/* Private data that the peer did not give is zeros in InfiniBand's messages, and missing in iWARP's. */
void test_private_padded(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = { .qp_num = 42 };
	struct rdma_cm_id *id, *listener;
	struct urdma_abi_cm_event request;

	for (int ib = 0; ib < 2; ib++) {
		fake_set_transport(ib ? IBV_TRANSPORT_IB : IBV_TRANSPORT_IWARP);
		listener = listening(channel, "0.0.0.0");
		request = (struct urdma_abi_cm_event){ .event = RDMA_CM_EVENT_CONNECT_REQUEST, .id = handle_of(listener),
			.child = fake_new_child(handle_of(listener)), .local = { htonl(0x0a000001), htons(7471), 0 },
			.peer = { htonl(0x0a000002), htons(5), 0 } };
		fake_send(&request);
		finish(zeros(channel, RDMA_CM_EVENT_CONNECT_REQUEST, ib ? 56 : 0));
		finish(listener);

		id = resolved(channel);
		CHECK(rdma_connect(id, &param) == 0);
		zeros(channel, ib ? RDMA_CM_EVENT_CONNECT_RESPONSE : RDMA_CM_EVENT_ESTABLISHED, ib ? 196 : 0);
		send_event(id, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
		zeros(channel, RDMA_CM_EVENT_REJECTED, ib ? 148 : 0);
		send_event(id, RDMA_CM_EVENT_DISCONNECTED, 0);
		zeros(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
		finish(id);
	}
	rdma_destroy_event_channel(channel);
}

void test_passive(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *listener = listening(channel, "0.0.0.0");
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	uint32_t child;

	CHECK(!listener->verbs && !listener->pd);
	child = request_arrives(listener);
	CHECK(rdma_get_cm_event(channel, &event) == 0);
	id = event->id;
	CHECK(event->event == RDMA_CM_EVENT_CONNECT_REQUEST && event->listen_id == listener);
	CHECK(id != listener && id->context == (void *)0x55 && id->verbs && id->channel == channel);
	CHECK(handle_of(id) == child);
	CHECK(event->param.conn.private_data_len == 255);
	CHECK(((const uint8_t *)event->param.conn.private_data)[1] == 8);
	CHECK(rdma_get_dst_port(id) == htons(5));
	CHECK(rdma_ack_cm_event(event) == 0);
	REFUSES(rdma_accept(id, NULL), EINVAL);
	CHECK(rdma_create_qp(id, NULL, &attr) == 0);
	CHECK(rdma_accept(id, NULL) == 0);
	CHECK(id->qp->state == IBV_QPS_RTS);
	CHECK(fake_ids[child].param.responder_resources == 16); /* 200 was reduced to the device's limit */
	CHECK(fake_ids[child].param.initiator_depth == 2);
	expect(channel, RDMA_CM_EVENT_ESTABLISHED);
	finish(id);
	finish(listener);
	rdma_destroy_event_channel(channel);
}
