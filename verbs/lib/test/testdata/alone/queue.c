/* queue.c - compares a queue of requests with a model, around the wrap of its indices: which slots are
 * free, and which requests are outstanding when urdmad has died. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../datapath/objects.h"

#define MOST 16u

/* Replacements for functions that queue.c's neighbours need; no case uses the state. */
bool urdma_client_alive(const struct urdma_client *client)
{
	(void)client;
	return true;
}

int urdma_qp_refresh(struct urdma_qp *qp)
{
	(void)qp;
	return 0;
}

struct request {
	uint64_t wr_id;
	bool signaled, done, silent;
};

/* requests: the requests from the first slot in use on. completions: indices of completions to be polled. */
static struct request requests[MOST];
static uint32_t waiting[MOST];
static uint32_t base, used, unpolled;
static uint64_t posted;
static bool failed;

static struct urdma_abi_sq_ring ring;
static struct urdma_abi_sqe slots[MOST];
static struct urdma_queue queue;

static uint32_t chance(uint32_t n)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % n;
}

static void begin(uint32_t depth, bool all)
{
	base = 0u - chance(200);
	used = unpolled = 0;
	failed = false;
	ring = (struct urdma_abi_sq_ring){ .prod = base, .cons = base };
	queue = (struct urdma_queue){ .prod = base, .cons = base, .seen = base, .polled = base, .depth = depth,
				      .mask = MOST - 1, .stride = sizeof(slots[0]), .all_signaled = all,
				      .slots = (uint8_t *)slots, .failing = &ring, .shared_prod = &ring.prod,
				      .shared_cons = &ring.cons };
}

static void drop(uint32_t n)
{
	memmove(requests, requests + n, (used - n) * sizeof(requests[0]));
	used -= n;
	base += n;
}

static void post(void)
{
	struct urdma_abi_sqe *slot = urdma_queue_slot(&queue);
	bool signaled = queue.all_signaled || chance(3) == 0;

	while (used && requests[0].silent)
		drop(1);
	assert(!slot == (used == queue.depth));
	if (!slot)
		return;
	assert(slot == &slots[(base + used) % MOST]);
	*slot = (struct urdma_abi_sqe){ .wr_id = posted, .opcode = IBV_WR_RDMA_READ,
					.flags = signaled && !queue.all_signaled ? IBV_SEND_SIGNALED : 0 };
	requests[used++] = (struct request){ .wr_id = posted++, .signaled = signaled };
	queue.prod++;
	urdma_queue_publish(&queue);
}

/* urdmad's part; with lose it dies before the completion. */
static void complete(bool lose)
{
	uint32_t i = 0;

	while (i < used && requests[i].done)
		i++;
	if (i == used)
		return;
	requests[i].done = true;
	requests[i].silent = !requests[i].signaled && !failed;
	ring.cons = base + i + 1;
	if (!requests[i].silent && !lose)
		waiting[unpolled++] = base + i;
	assert(unpolled <= queue.depth); /* the completion queue has as many entries */
}

static void fail(void)
{
	uint32_t i = 0;

	while (i < used && requests[i].done)
		i++;
	if (failed || queue.all_signaled)
		return;
	failed = true;
	ring.first_failed = base + i;
	ring.failed = 1;
}

static void poll_one(void)
{
	uint32_t index = waiting[0];

	if (!unpolled)
		return;
	memmove(waiting, waiting + 1, --unpolled * sizeof(waiting[0]));
	urdma_queue_polled(&queue, index);
	drop(index + 1 - base);
}

static void reset(void)
{
	uint32_t late = waiting[0], had = unpolled;

	base += used;
	used = unpolled = 0;
	failed = false;
	ring.failed = 0;
	ring.cons = base;
	urdma_queue_reset(&queue);
	if (had) /* taken just before */
		urdma_queue_polled(&queue, late);
}

static void die(void)
{
	struct urdma_lost lost;

	if (chance(2))
		complete(true);
	while (unpolled)
		poll_one();
	for (uint32_t i = 0; i < used; i++) {
		if (requests[i].silent)
			continue;
		assert(urdma_queue_lost(&queue, false, &lost) && lost.wr_id == requests[i].wr_id);
		assert(urdma_queue_lost(&queue, true, &lost) && lost.wr_id == requests[i].wr_id);
		assert(urdma_queue_was_lost(&queue, base + i) && !urdma_queue_was_lost(&queue, base + i + 1));
	}
	assert(!urdma_queue_lost(&queue, true, &lost));
}

static void one_life(bool all)
{
	begin(1 + chance(MOST), all);
	for (int step = 0; step < 500; step++) {
		uint32_t n = chance(100);

		if (n < 45)
			post();
		else if (n < 75)
			complete(false);
		else if (n < 97)
			poll_one();
		else if (n < 98)
			fail();
		else if (n < 99)
			reset();
	}
	die();
}

/* 2^32 unsignaled sends pass the last polled index, which comes round again: it must not count twice. */
static void around(void)
{
	struct urdma_lost lost;

	begin(4, false);
	queue.prod = queue.cons = queue.seen = queue.polled = ring.prod = ring.cons = base = 0xfffffffe;
	for (int i = 0; i < 4; i++)
		post();
	assert(!urdma_queue_slot(&queue));
	/* As if the completion of index 0xffffffff had been polled 2^32 requests ago. */
	queue.seen = queue.polled = 0;
	assert(!urdma_queue_slot(&queue));
	for (int i = 0; i < 4; i++)
		assert(urdma_queue_lost(&queue, true, &lost) && lost.wr_id == requests[i].wr_id);
}

int main(void)
{
	for (int i = 0; i < 2000; i++)
		one_life(i % 3 == 0);
	around();
	puts("ok");
	return 0;
}
