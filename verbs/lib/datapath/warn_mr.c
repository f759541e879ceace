/* warn_mr.c - mistakes with registering and deregistering memory, see warn.h. */
#include "warn_rings.h"

#define EACH 64u         /* this many registrations in turn, each for at most this many work requests, are a mistake */
#define TINY 4096u       /* bytes: regions smaller than a page count as tiny */
#define MANY 1000u       /* number of tiny regions that is a mistake */
#define MUCH 65536u      /* bytes: larger than typical message buffers on a stack */

static uint64_t posts;   /* work requests posted by this process */
static uint64_t before;  /* value of posts at the last registration */
/* registrations that followed a deregistration, with few posts in between and no new queue pair */
static uint32_t in_turn;
static uint32_t tiny;
static bool deregistered; /* a region was deregistered after few posts, and none registered since */

void urdma_warn_counts(uint32_t n)
{
	__atomic_add_fetch(&posts, n, __ATOMIC_RELAXED);
}

/* While a program or a connection is set up, any order of registrations is fine. */
void urdma_warn_setup(void)
{
	URDMA_STORE(in_turn, 0);
	URDMA_STORE(deregistered, false);
}

static bool is_tiny(const struct ibv_mr *mr)
{
	return mr->length && mr->length < TINY;
}

void urdma_warn_registers(const struct ibv_mr *mr, const char *fallback)
{
	if (fallback && mr->length >= MUCH)
		urdma_warn(NULL, 0, URDMA_ABI_PITFALL_FALLBACK, "%zu bytes, because of %s", mr->length, fallback);
	if (is_tiny(mr) && __atomic_add_fetch(&tiny, 1, __ATOMIC_RELAXED) == MANY)
		urdma_warn(NULL, 0, URDMA_ABI_PITFALL_TINY, "%u regions, this one of %zu bytes", MANY, mr->length);
	if (URDMA_LOAD(deregistered) && __atomic_add_fetch(&in_turn, 1, __ATOMIC_RELAXED) == EACH)
		urdma_warn(NULL, 0, URDMA_ABI_PITFALL_REGISTERS, "%u regions in turn, each for at most %u work requests", EACH, EACH);
	URDMA_STORE(deregistered, false);
	URDMA_STORE(before, URDMA_LOAD(posts));
}

static void check_use(const struct ibv_mr *mr)
{
	uint64_t n = URDMA_LOAD(posts) - URDMA_LOAD(before);

	if (is_tiny(mr))
		__atomic_sub_fetch(&tiny, 1, __ATOMIC_RELAXED);
	if (n > EACH)
		urdma_warn_setup();
	else if (n)
		URDMA_STORE(deregistered, true);
}

static bool names(const struct urdma_queue *q, size_t head, uint32_t index, uint32_t lkey)
{
	const uint8_t *slot = slot_at(q, index);
	const struct urdma_abi_sge *sge = (const void *)(slot + head);
	uint32_t n = head == sizeof(struct urdma_abi_sqe) ? ((const struct urdma_abi_sqe *)(const void *)slot)->num_sge :
							     ((const struct urdma_abi_rqe *)(const void *)slot)->num_sge;

	for (uint32_t i = 0; i < n && i < q->max_sge; i++)
		if (sge[i].lkey == lkey)
			return true;
	return false;
}

/* Counts requests in a queue that urdmad has not carried out and that use a region. */
static uint32_t using(const struct urdma_queue *q, size_t head, uint32_t lkey)
{
	uint32_t n = 0;

	for (uint32_t i = q->depth ? undone(q) : posted(q); i != posted(q); i++)
		n += names(q, head, i, lkey);
	return n;
}

void urdma_warn_deregisters(struct urdma_client *client, const struct ibv_mr *mr)
{
	struct urdma_qp *qp;
	uint32_t sends, receives;

	check_use(mr);
	if (urdma_client_state(client) != URDMA_CLIENT_LIVE)
		return;
	for (uint32_t i = 0; i < client->max_pairs; i++) {
		qp = __atomic_load_n(&client->pairs[i].name, __ATOMIC_ACQUIRE) ? client->pairs[i].qp : NULL;
		if (!qp || !qp->rings)
			continue;
		sends = using(&qp->sq, sizeof(struct urdma_abi_sqe), mr->lkey);
		receives = qp->ex.qp_base.srq ? 0 : using(&qp->rq, sizeof(struct urdma_abi_rqe), mr->lkey);
		if (sends + receives && works(qp))
			urdma_warn(client, qp->ex.qp_base.qp_num, URDMA_ABI_PITFALL_DEREGISTERED,
				"%u sends and %u receives name lkey %#x, [%p, +%zu)",
				   sends, receives, mr->lkey, mr->addr, mr->length);
	}
}
