/*
 * strict.c - polling that behaves as specifications allow and hardware seldom does (URDMA_STRICT). Without
 * that variable no function here is called.
 */
#include "objects.h"

#define MOST_LATE 16u /* fewer than this many polls find nothing before one finds a completion */

/* SplitMix64 for the n-th draw (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators). */
uint32_t urdma_draw(uint64_t seed, uint64_t n)
{
	uint64_t z = seed + n * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ (z >> 31)) >> 32);
}

static void fill(void *at, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)at)[i] = (uint8_t)urdma_draw(seed, i + 1);
}

static void garbage_in_wc(const struct urdma_client *client, struct ibv_wc *wc)
{
	struct ibv_wc valid = *wc;

	fill(wc, sizeof(*wc), client->strict_seed + valid.wr_id);
	wc->wr_id = valid.wr_id;
	wc->status = valid.status;
	wc->qp_num = valid.qp_num;
	wc->vendor_err = valid.vendor_err;
}

void urdma_strict_failed(struct urdma_cq *cq)
{
	struct urdma_abi_cqe valid = cq->now;

	if (!(cq->client->strict & URDMA_ABI_STRICT_GARBAGE))
		return;
	fill(&cq->now, sizeof(cq->now), cq->client->strict_seed + valid.wr_id);
	cq->now.wr_id = valid.wr_id;
	cq->now.status = valid.status;
	cq->now.qp_num = valid.qp_num;
	cq->now.vendor_err = valid.vendor_err;
}

/* Returns whether this poll must find nothing, although a completion may be there. Queues with a channel
 * are left alone: an event promises a completion. */
bool urdma_strict_early(struct urdma_cq *cq)
{
	uint32_t polls = URDMA_LOAD(cq->polls), late;

	if (!(cq->client->strict & URDMA_ABI_STRICT_LATE) || cq->ex.channel)
		return false;
	late = urdma_draw(cq->client->strict_seed + cq->ex.handle, URDMA_LOAD(cq->finds)) % MOST_LATE;
	URDMA_STORE(cq->polls, polls + 1);
	return polls < late;
}

void urdma_strict_found(struct urdma_cq *cq)
{
	URDMA_STORE(cq->finds, URDMA_LOAD(cq->finds) + 1);
	URDMA_STORE(cq->polls, 0);
}

static int poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct urdma_cq *cq = urdma_cq_of(ibv);
	int n = urdma_strict_early(cq) ? 0 : urdma_poll_cq(ibv, num_entries, wc);

	if (n > 0)
		urdma_strict_found(cq);
	for (int i = 0; i < n && (cq->client->strict & URDMA_ABI_STRICT_GARBAGE); i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			garbage_in_wc(cq->client, &wc[i]);
	}
	return n;
}

void urdma_strict_polls(struct ibv_context *context)
{
	context->ops.poll_cq = poll_cq;
}
