/* files.c - queues share the files that contain them, whichever thread creates or destroys them. */
#include <pthread.h>

#include "objects.h"

#define PAIRS 24

/* Returns the number of mappings of queues' memory in this process. */
static int mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	CHECK(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, "/memfd:urdma-q") != NULL || strstr(line, "/memfd:urdma-cq") != NULL;
	fclose(maps);
	return n;
}

/* Writes a number through a pair and checks that it arrived. */
static void use(struct end *a, struct end *b, uint8_t number)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = write_to(a, b->mr->rkey, (uintptr_t)b->memory, 64, &sge);

	a->memory[0] = number;
	CHECK_RETURNS(post(a, &wr), 0);
	completion(a, IBV_WC_SUCCESS);
	CHECK(b->memory[0] == number);
}

/* Every second pair is destroyed and created again between others that stay. */
void case_many_queues(void)
{
	struct end a[PAIRS], b[PAIRS];
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

	CHECK(mapped() == 0);
	for (int i = 0; i < PAIRS; i++)
		pair_up(&a[i], &b[i], IBV_QPT_RC, access);
	CHECK(mapped() <= 6);
	for (int round = 0; round < 5; round++) {
		for (int i = round % 2; i < PAIRS; i += 2) {
			end_free(&a[i]);
			end_free(&b[i]);
		}
		for (int i = 1 - round % 2; i < PAIRS; i += 2)
			use(&a[i], &b[i], (uint8_t)(16 * round + i));
		for (int i = round % 2; i < PAIRS; i += 2)
			pair_up(&a[i], &b[i], IBV_QPT_RC, access);
		for (int i = 0; i < PAIRS; i++)
			use(&a[i], &b[i], (uint8_t)(7 * round + i));
	}
	CHECK(mapped() <= 6);
	for (int i = 0; i < PAIRS; i++) {
		end_free(&a[i]);
		end_free(&b[i]);
	}
	CHECK(mapped() == 0);
}

static void *make_and_destroy(void *argument)
{
	(void)argument;
	for (int i = 0; i < 60; i++) {
		struct ibv_cq *cq = ibv_create_cq(context, 1 + i, NULL, NULL, 0);
		struct ibv_recv_wr *bad, wr = { .wr_id = 1 };
		struct ibv_qp *qp;

		CHECK(cq);
		qp = new_qp(IBV_QPT_RC, cq);
		to_init(qp, 0);
		for (int k = 0; k < 32; k++)
			CHECK_RETURNS(ibv_post_recv(qp, &wr, &bad), 0);
		if (i % 3 == 0)
			CHECK_RETURNS(ibv_resize_cq(cq, 300), 0);
		CHECK_RETURNS(ibv_destroy_qp(qp), 0);
		CHECK_RETURNS(ibv_destroy_cq(cq), 0);
	}
	return NULL;
}

/* Threads create and destroy queues: a file that one gives up is never used for another thread's new
 * queue. */
void case_queue_threads(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK_RETURNS(pthread_create(&threads[i], NULL, make_and_destroy, NULL), 0);
	for (int i = 0; i < 4; i++)
		CHECK_RETURNS(pthread_join(threads[i], NULL), 0);
	CHECK(mapped() == 0);
}
