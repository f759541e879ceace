/* endpoint.c - an id with queues of its own, destroyed under a thread that waits
 * for its completions: programs end that way. */
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <unistd.h>

#include "slots.h"

static bool woke;

static void *wait_for_receive(void *id)
{
	struct ibv_wc wc;

	rdma_get_recv_comp(id, &wc);
	__atomic_store_n(&woke, true, __ATOMIC_RELAXED);
	return NULL;
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
	usleep(100000);
	rdma_destroy_ep(id);
	for (int i = 0; i < 100; i++)
		free(memset(malloc(64u << i % 5), 0xA5, 64u << i % 5)); /* where the objects were */
	usleep(300000);
	CHECK(!pthread_cancel(thread));
	CHECK(!pthread_join(thread, &result) && result == PTHREAD_CANCELED && !woke);
}
