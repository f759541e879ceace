/* files.c - queues share the files that they lie in, whoever makes and destroys
 * them, and whenever. */
#include <pthread.h>

#include "objects.h"

#define PAIRS 24

/* How many mappings of queues' memory this process has. */
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

/* Writes a number of its own through a pair and finds it there. */
static void use(struct end *a, struct end *b, uint8_t number)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = write_to(a, b->mr->rkey, (uintptr_t)b->memory, 64, &sge);

	a->memory[0] = number;
	CHECK_RETURNS(post(a, &wr), 0);
	completion(a, IBV_WC_SUCCESS);
	CHECK(b->memory[0] == number);
}

/* Every second pair goes and comes again between those that stay. */
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

/* Threads make and destroy queues: a file that one of them gives up is never another's
 * that is just being made. */
void case_queue_threads(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK_RETURNS(pthread_create(&threads[i], NULL, make_and_destroy, NULL), 0);
	for (int i = 0; i < 4; i++)
		CHECK_RETURNS(pthread_join(threads[i], NULL), 0);
	CHECK(mapped() == 0);
}
