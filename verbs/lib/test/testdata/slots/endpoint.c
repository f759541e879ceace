/* endpoint.c - an id with its own queues is destroyed while a thread waits for its completions, as some
 * programs do at their end. */
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "slots.h"

static bool woke;
static pid_t waiter;

static void *wait_for_receive(void *id)
{
	struct ibv_wc wc;

	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELEASE);
	rdma_get_recv_comp(id, &wc);
	__atomic_store_n(&woke, true, __ATOMIC_RELAXED);
	return NULL;
}

/* Waits until the thread sleeps. */
static void await_sleep(void)
{
	char thread[16];

	do {
		usleep(1000);
		snprintf(thread, sizeof(thread), "%d", __atomic_load_n(&waiter, __ATOMIC_ACQUIRE));
	} while (state_of("self", thread) != 'S');
}

void case_endpoint_destroyed(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc6120001) };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct rdma_cm_id *id;
	pthread_t thread;
	void *result;

	CHECK_RETURNS(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	CHECK_RETURNS(rdma_bind_addr(id, (struct sockaddr *)&at), 0);
	CHECK_RETURNS(rdma_create_qp(id, NULL, &attr), 0);
	CHECK(!pthread_create(&thread, NULL, wait_for_receive, id));
	await_sleep();
	rdma_destroy_ep(id);
	for (int i = 0; i < 100; i++)
		free(memset(malloc(64u << i % 5), 0xA5, 64u << i % 5)); /* overwrites memory where the objects were */
	usleep(300000);
	CHECK(!pthread_cancel(thread));
	CHECK(!pthread_join(thread, &result) && result == PTHREAD_CANCELED && !woke);
}

static struct rdma_cm_id *bound_id(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc6120001) };
	struct rdma_cm_id *id;

	CHECK_RETURNS(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	CHECK_RETURNS(rdma_bind_addr(id, (struct sockaddr *)&at), 0);
	return id;
}

/* Queues made by rdma_create_qp are like those that programs make: in the right state, with events, and
 * destroyed with the queue pair, or by the program. */
static void check_own_queues(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init, attr = { .qp_type = IBV_QPT_RC, .cap = { 4, 7, 1, 1, 0 } };
	struct ibv_qp_attr now;

	CHECK_RETURNS(rdma_create_qp(id, NULL, &attr), 0);
	CHECK(id->qp->state == IBV_QPS_INIT);
	CHECK_RETURNS(ibv_query_qp(id->qp, &now, IBV_QP_STATE, &init), 0);
	CHECK(now.qp_state == IBV_QPS_INIT && init.cap.max_recv_wr >= 7);
	CHECK(id->send_cq && id->recv_cq && id->send_cq != id->recv_cq);
	CHECK(id->send_cq->channel == id->send_cq_channel && id->recv_cq->channel == id->recv_cq_channel);
	CHECK(id->send_cq->cq_context == id && id->recv_cq->cq_context == id);
	CHECK(id->qp->send_cq == id->send_cq && id->qp->recv_cq == id->recv_cq && attr.send_cq == NULL);
	CHECK_RETURNS(ibv_req_notify_cq(id->recv_cq, 0), 0);
}

/* A second queue pair completes on an id's own queues: rdma_destroy_qp keeps them, because they are in
 * use. */
static void check_shared_queue(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_comp_channel *channels[2] = { id->send_cq_channel, id->recv_cq_channel };
	struct ibv_cq *queues[2] = { id->send_cq, id->recv_cq };
	struct ibv_qp *second;

	attr.send_cq = attr.recv_cq = queues[1];
	second = ibv_create_qp(id->pd, &attr);
	CHECK(second);
	rdma_destroy_qp(id);
	CHECK(!id->qp && !id->send_cq && !id->recv_cq_channel);
	CHECK_RETURNS(ibv_destroy_qp(second), 0);
	CHECK_RETURNS(ibv_destroy_cq(queues[1]), 0);
	CHECK_RETURNS(ibv_destroy_comp_channel(channels[1]), 0);
}

/* A failed creation leaves nothing behind, and its attributes are unchanged. */
static void check_refused(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 1 << 20 } };

	errno = 0;
	CHECK(rdma_create_qp(id, NULL, &attr) == -1 && errno == EINVAL);
	CHECK(!id->qp && !id->send_cq && !id->recv_cq && !id->send_cq_channel && !attr.send_cq);
	attr.cap.max_inline_data = 0;
	attr.cap.max_send_wr = 0; /* and without a send queue */
	CHECK(rdma_create_qp(id, NULL, &attr) == -1 && errno == EINVAL);
	CHECK(!id->qp && !id->send_cq && !id->recv_cq);
}

/* As in rsockets: one queue made by the program for both directions, which the id destroys. Queues made
 * later are not affected. */
static void check_one_queue(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_comp_channel *channel = ibv_create_comp_channel(id->verbs);
	struct ibv_cq *cq = ibv_create_cq(id->verbs, 8, id, channel, 0);

	CHECK(channel && cq);
	id->send_cq_channel = id->recv_cq_channel = channel;
	id->send_cq = id->recv_cq = cq;
	CHECK_RETURNS(rdma_create_qp(id, NULL, &attr), 0);
	CHECK(id->qp->send_cq == cq && id->qp->recv_cq == cq && id->send_cq == cq);
	rdma_destroy_qp(id);
	CHECK(!id->qp && !id->send_cq && !id->recv_cq);
	channel = ibv_create_comp_channel(id->verbs);
	CHECK(channel);
	CHECK_RETURNS(ibv_destroy_comp_channel(channel), 0);
}

void case_endpoints(void)
{
	struct rdma_cm_id *id = bound_id();

	for (int i = 0; i < 20; i++) {
		check_refused(id);
		check_own_queues(id);
		rdma_destroy_qp(id);
		CHECK(!id->qp && !id->send_cq && !id->send_cq_channel);
		check_one_queue(id);
	}
	check_own_queues(id);
	check_shared_queue(id);
	CHECK_RETURNS(rdma_destroy_id(id), 0);
}
